// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/exec_messages.h"

#include <csignal>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>

#include "base/strings.h"
#include "connect/json_codec.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

json::object selector(uint32_t pid) { return {{"pid", pid}}; }

// The texts that the protocol has for signals.
constexpr std::pair<std::string_view, int> kSignals[] = {
    {"hangup", SIGHUP},
    {"interrupt", SIGINT},
    {"quit", SIGQUIT},
    {"illegal instruction", SIGILL},
    {"trace/breakpoint trap", SIGTRAP},
    {"aborted", SIGABRT},
    {"bus error", SIGBUS},
    {"floating point exception", SIGFPE},
    {"killed", SIGKILL},
    {"user defined signal 1", SIGUSR1},
    {"segmentation fault", SIGSEGV},
    {"user defined signal 2", SIGUSR2},
    {"broken pipe", SIGPIPE},
    {"alarm clock", SIGALRM},
    {"terminated", SIGTERM},
};

constexpr std::pair<std::string_view, Output::Stream> kStreams[] = {
    {"stdout", Output::Stream::kOutput},
    {"stderr", Output::Stream::kError},
    {"pty", Output::Stream::kOutput},
};

constexpr std::pair<std::string_view, std::string_view> kTerminalVariables[] = {
    {"TERM", "xterm-256color"},
    {"LANG", "C.UTF-8"},
    {"LC_ALL", "C.UTF-8"},
};

json::object terminal_of(TerminalSize size) {
  return {{"size", json::object{{"cols", size.columns}, {"rows", size.rows}}}};
}

int signal_of(std::string_view status) {
  constexpr std::string_view kPrefix = "signal: ";
  if (!status.starts_with(kPrefix)) return 0;
  status.remove_prefix(kPrefix.size());
  status = status.substr(0, status.find(" (core dumped)"));
  for (const auto& [name, number] : kSignals) {
    if (status == name) return number;
  }
  return 0;
}

Result<ProcessEvent> parse_data(const json::object& data) {
  for (const auto& [name, stream] : kStreams) {
    if (connect::find_field(data, name) == nullptr) continue;
    ALCOVE_TRY_ASSIGN(std::string bytes, connect::read_bytes(data, name));
    return Output{.stream = stream, .data = std::move(bytes)};
  }
  return Nothing{};
}

Result<ProcessEvent> parse_end(const json::object& end) {
  ALCOVE_TRY_ASSIGN(const int32_t code, connect::read_int32(end, "exitCode"));
  ALCOVE_TRY_ASSIGN(const bool exited, connect::read_bool(end, "exited"));
  ALCOVE_TRY_ASSIGN(std::string status, connect::read_string(end, "status"));
  Ended ended{.exit_code = code & 0xff, .by_signal = !exited, .status = std::move(status)};
  if (!exited) {
    const int number = signal_of(ended.status);
    ended.exit_code = number > 0 ? 128 + number : 255;
  }
  return ended;
}

}  // namespace

std::string start_message(const ExecOptions& options, Input input, TerminalSize size) {
  json::array arguments(options.command.begin() + 1, options.command.end());
  json::object envs;
  for (const auto& [name, value] : options.env_vars) envs.emplace(name, value);
  if (input == Input::kTerminal) {
    // Leaves those that are there.
    for (const auto& [name, value] : kTerminalVariables) envs.emplace(name, value);
  }
  json::object process{
      {"cmd", options.command.front()}, {"args", std::move(arguments)}, {"envs", std::move(envs)}};
  if (!options.directory.empty()) process["cwd"] = options.directory;
  json::object message{{"process", std::move(process)}};
  if (input == Input::kTerminal) {
    message["pty"] = terminal_of(size);
  } else {
    message["stdin"] = input == Input::kPipe;
  }
  return json::serialize(message);
}

std::string input_message(uint32_t pid, Input input, std::string_view data) {
  const std::string_view kind = input == Input::kTerminal ? "pty" : "stdin";
  std::string out = cat(R"({"process":{"pid":)", pid, R"(},"input":{")", kind, R"(":)");
  connect::append_json_bytes(out, data);
  out += "}}";
  return out;
}

std::string resize_message(uint32_t pid, TerminalSize size) {
  return json::serialize(json::object{{"process", selector(pid)}, {"pty", terminal_of(size)}});
}

std::string selector_message(uint32_t pid) {
  return json::serialize(json::object{{"process", selector(pid)}});
}

std::string signal_message(uint32_t pid, std::string_view name) {
  return json::serialize(json::object{{"process", selector(pid)}, {"signal", name}});
}

Result<ProcessEvent> parse_event(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  ALCOVE_TRY_ASSIGN(const json::object* event, connect::read_object(object, "event"));
  if (event == nullptr) return Nothing{};
  ALCOVE_TRY_ASSIGN(const json::object* data, connect::read_object(*event, "data"));
  if (data != nullptr) return parse_data(*data);
  ALCOVE_TRY_ASSIGN(const json::object* start, connect::read_object(*event, "start"));
  if (start != nullptr) {
    ALCOVE_TRY_ASSIGN(const uint32_t pid, connect::read_uint32(*start, "pid"));
    return Started{pid};
  }
  ALCOVE_TRY_ASSIGN(const json::object* end, connect::read_object(*event, "end"));
  if (end != nullptr) return parse_end(*end);
  return Nothing{};
}

}  // namespace alcove::cli

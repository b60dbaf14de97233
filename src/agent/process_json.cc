// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_json.h"

#include <array>
#include <utility>

#include "agent/json_map.h"
#include "base/strings.h"
#include "connect/json_codec.h"
#include "connect/json_writer.h"

namespace alcove::agent::json_codec {
namespace {

namespace json = boost::json;

constexpr std::array<connect::EnumName, 3> kSignals = {
    {{"SIGNAL_UNSPECIFIED", 0}, {"SIGNAL_SIGKILL", 9}, {"SIGNAL_SIGTERM", 15}}};

Result<std::optional<std::string>> read_optional_string(const json::object& object,
                                                        std::string_view name) {
  if (connect::find_field(object, name) == nullptr) return std::optional<std::string>();
  ALCOVE_TRY_ASSIGN(std::string text, connect::read_string(object, name));
  return std::optional<std::string>(std::move(text));
}

Result<ProcessConfig> read_config(const json::object& object) {
  ProcessConfig config;
  ALCOVE_TRY_ASSIGN(config.command, connect::read_string(object, "cmd"));
  ALCOVE_TRY_ASSIGN(config.arguments, connect::read_strings(object, "args"));
  ALCOVE_TRY_ASSIGN(auto variables, connect::read_string_map(object, "envs"));
  for (auto& [name, value] : variables) config.environment[std::move(name)] = std::move(value);
  ALCOVE_TRY_ASSIGN(config.directory, read_optional_string(object, "cwd"));
  return config;
}

// The size inside a PTY message; nothing if it has none.
Result<std::optional<TerminalSize>> read_size(const json::object& terminal) {
  ALCOVE_TRY_ASSIGN(const json::object* size, connect::read_object(terminal, "size"));
  if (size == nullptr) return std::optional<TerminalSize>();
  ALCOVE_TRY_ASSIGN(const uint32_t cols, connect::read_uint32(*size, "cols"));
  ALCOVE_TRY_ASSIGN(const uint32_t rows, connect::read_uint32(*size, "rows"));
  return std::optional<TerminalSize>(
      TerminalSize{static_cast<uint16_t>(cols), static_cast<uint16_t>(rows)});
}

Result<ProcessSelector> read_selector(const json::object& message) {
  ALCOVE_TRY_ASSIGN(const json::object* selector, connect::read_object(message, "process"));
  if (selector == nullptr) return ProcessSelector();
  if (connect::find_field(*selector, "pid") != nullptr) {
    ALCOVE_TRY_ASSIGN(const uint32_t pid, connect::read_uint32(*selector, "pid"));
    return ProcessSelector(ByPid{pid});
  }
  ALCOVE_TRY_ASSIGN(auto tag, read_optional_string(*selector, "tag"));
  if (tag) return ProcessSelector(ByTag{*std::move(tag)});
  return ProcessSelector();
}

Result<std::optional<ProcessInput>> read_input(const json::object& message) {
  ALCOVE_TRY_ASSIGN(const json::object* input, connect::read_object(message, "input"));
  if (input == nullptr) return std::optional<ProcessInput>();
  // A key that is there with nothing in it counts as set.
  const std::pair<std::string_view, InputKind> kinds[] = {{"stdin", InputKind::kStdin},
                                                          {"pty", InputKind::kTerminal}};
  for (const auto& [name, kind] : kinds) {
    if (connect::find_field(*input, name) == nullptr) continue;
    ALCOVE_TRY_ASSIGN(std::string data, connect::read_bytes(*input, name));
    return std::optional<ProcessInput>(ProcessInput{kind, std::move(data)});
  }
  return std::optional<ProcessInput>();
}

void append_config(std::string& out, const ProcessConfig& config) {
  out += "{\"cmd\":";
  connect::append_json_string(out, config.command);
  if (!config.arguments.empty()) {
    out += ",\"args\":[";
    for (size_t i = 0; i < config.arguments.size(); ++i) {
      if (i > 0) out += ',';
      connect::append_json_string(out, config.arguments[i]);
    }
    out += ']';
  }
  if (!config.environment.empty()) {
    out += ",\"envs\":";
    append_json_map(out, config.environment);
  }
  if (config.directory) {
    out += ",\"cwd\":";
    connect::append_json_string(out, *config.directory);
  }
  out += '}';
}

}  // namespace

Result<StartRequest> decode_start(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  StartRequest request;
  ALCOVE_TRY_ASSIGN(const json::object* config, connect::read_object(object, "process"));
  if (config != nullptr) {
    ALCOVE_TRY_ASSIGN(request.process, read_config(*config));
  }
  ALCOVE_TRY_ASSIGN(const json::object* terminal, connect::read_object(object, "pty"));
  if (terminal != nullptr) {
    ALCOVE_TRY_ASSIGN(const auto size, read_size(*terminal));
    request.terminal = size.value_or(TerminalSize{});
  }
  ALCOVE_TRY_ASSIGN(request.tag, read_optional_string(object, "tag"));
  if (connect::find_field(object, "stdin") != nullptr) {
    ALCOVE_TRY_ASSIGN(const bool wanted, connect::read_bool(object, "stdin"));
    request.input = wanted ? SpawnSpec::Input::kPipe : SpawnSpec::Input::kNull;
  }
  return request;
}

Result<ProcessSelector> decode_selector(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  return read_selector(object);
}

Result<SendInputRequest> decode_send_input(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  SendInputRequest request;
  ALCOVE_TRY_ASSIGN(request.process, read_selector(object));
  ALCOVE_TRY_ASSIGN(request.input, read_input(object));
  return request;
}

Result<StreamInputRequest> decode_stream_input(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  StreamInputRequest request;
  ALCOVE_TRY_ASSIGN(const json::object* start, connect::read_object(object, "start"));
  if (start != nullptr) {
    ALCOVE_TRY_ASSIGN(request.start, read_selector(*start));
  }
  ALCOVE_TRY_ASSIGN(const json::object* data, connect::read_object(object, "data"));
  if (data != nullptr) {
    request.has_data = true;
    ALCOVE_TRY_ASSIGN(request.input, read_input(*data));
  }
  return request;
}

Result<SendSignalRequest> decode_send_signal(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  SendSignalRequest request;
  ALCOVE_TRY_ASSIGN(request.process, read_selector(object));
  ALCOVE_TRY_ASSIGN(request.signal, connect::read_enum(object, "signal", kSignals));
  return request;
}

Result<UpdateRequest> decode_update(std::string_view message) {
  ALCOVE_TRY_ASSIGN(const json::object object, connect::parse_message(message));
  UpdateRequest request;
  ALCOVE_TRY_ASSIGN(request.process, read_selector(object));
  ALCOVE_TRY_ASSIGN(const json::object* terminal, connect::read_object(object, "pty"));
  if (terminal != nullptr) {
    ALCOVE_TRY_ASSIGN(request.terminal, read_size(*terminal));
  }
  return request;
}

std::string encode_process_list(const std::vector<ProcessInfo>& processes) {
  if (processes.empty()) return "{}";
  std::string out = "{\"processes\":[";
  for (size_t i = 0; i < processes.size(); ++i) {
    if (i > 0) out += ',';
    out += "{\"config\":";
    append_config(out, processes[i].config);
    out += cat(",\"pid\":", processes[i].pid);
    if (processes[i].tag) {
      out += ",\"tag\":";
      connect::append_json_string(out, *processes[i].tag);
    }
    out += '}';
  }
  out += "]}";
  return out;
}

void append_start_event(uint32_t pid, std::string& out) {
  connect::append_envelope(out, cat("{\"event\":{\"start\":{\"pid\":", pid, "}}}"));
}

void append_output_event(OutputKind kind, std::string_view data, std::string& out) {
  std::string_view prefix = R"({"event":{"data":{"stdout":")";
  if (kind == OutputKind::kStderr) prefix = R"({"event":{"data":{"stderr":")";
  if (kind == OutputKind::kTerminal) prefix = R"({"event":{"data":{"pty":")";
  constexpr std::string_view kSuffix = R"("}}})";
  const size_t size = prefix.size() + (data.size() + 2) / 3 * 4 + kSuffix.size();
  connect::append_envelope_head(out, size);
  out += prefix;
  append_base64(out, data);
  out += kSuffix;
}

void append_end_event(const EndEvent& end, std::string& out) {
  std::string message = R"({"event":{"end":{)";
  if (end.exit_code != 0) message += cat("\"exitCode\":", end.exit_code, ",");
  if (end.exited) message += "\"exited\":true,";
  message += "\"status\":";
  connect::append_json_string(message, end.status);
  if (end.error) {
    message += ",\"error\":";
    connect::append_json_string(message, *end.error);
  }
  message += "}}}";
  connect::append_envelope(out, message);
}

void append_keepalive_event(std::string& out) {
  connect::append_envelope(out, R"({"event":{"keepalive":{}}})");
}

}  // namespace alcove::agent::json_codec

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/runner_frames.h"

#include <utility>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

constexpr size_t kLengthBytes = 4;
// Deep enough for any result that is looked at, and far from the end of the stack.
constexpr size_t kMaxDepth = 256;

std::string text_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_string()) return {};
  return std::string(value->get_string());
}

int64_t number_of(const json::object& object, std::string_view key) {
  const json::value* value = object.if_contains(key);
  if (value == nullptr || !value->is_int64()) return -1;
  return value->get_int64();
}

std::string traceback_of(const json::object& object) {
  const json::value* value = object.if_contains("traceback");
  if (value == nullptr || !value->is_array()) return text_of(object, "traceback");
  std::string joined;
  for (const json::value& piece : value->get_array()) {
    if (piece.is_string()) joined += std::string_view(piece.get_string());
  }
  return joined;
}

RunnerMessage parse_result(json::object& object, int64_t id) {
  json::value* data = object.if_contains("data");
  if (data == nullptr || !data->is_object()) return RunnerUnknown{};
  const json::value* main = object.if_contains("main");
  const bool is_main = main != nullptr && main->is_bool() && main->get_bool();
  return RunnerEvent{
      id, Display{std::move(data->get_object()),
                  is_main ? Display::Kind::kValueOfLastExpression : Display::Kind::kDisplayed}};
}

}  // namespace

Result<std::optional<std::string>> FrameParser::next() {
  const std::string_view rest = std::string_view(buffer_).substr(start_);
  if (rest.size() < kLengthBytes) return std::optional<std::string>();
  uint32_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length = length << 8 | static_cast<uint8_t>(rest[i]);
  if (length > kMaxFrame) return fail(Code::kResourceExhausted, "a runner's frame is too long");
  if (rest.size() - kLengthBytes < length) {
    // What was taken makes room before more comes.
    buffer_.erase(0, start_);
    start_ = 0;
    return std::optional<std::string>();
  }
  std::string frame(rest.substr(kLengthBytes, length));
  start_ += kLengthBytes + length;
  if (start_ == buffer_.size()) {
    buffer_ = {};
    start_ = 0;
  }
  return std::optional(std::move(frame));
}

std::string execute_frame(int64_t id, const Execution& execution, Before before) {
  json::object env;
  for (const auto& [name, value] : execution.env_vars) env[name] = value;
  json::object message{
      {"type", "execute"}, {"id", id}, {"code", execution.code}, {"env", std::move(env)}};
  if (before == Before::kInterrupt) message["after_interrupt"] = true;
  const std::string body = json::serialize(message);
  std::string frame;
  for (int shift = 24; shift >= 0; shift -= 8) {
    frame += static_cast<char>(static_cast<uint8_t>(body.size() >> shift));
  }
  return frame + body;
}

RunnerMessage parse_runner_message(std::string_view text) {
  json::parse_options options;
  options.max_depth = kMaxDepth;
  options.allow_invalid_utf8 = true;
  json::error_code error;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error || !value.is_object()) return RunnerUnknown{};
  json::object& object = value.get_object();
  const std::string type = text_of(object, "type");
  const int64_t id = number_of(object, "id");
  if (type == "ready") return RunnerReady{};
  if (type == "done") return RunnerDone{id};
  if (type == "started") return RunnerEvent{id, RunStarted{number_of(object, "execution_count")}};
  if (type == "result") return parse_result(object, id);
  if (type == "stream") {
    StreamOutput output;
    output.text = text_of(object, "text");
    if (output.text.empty()) return RunnerUnknown{};
    if (text_of(object, "name") == "stderr") output.name = StreamOutput::Name::kStderr;
    return RunnerEvent{id, std::move(output)};
  }
  if (type == "error") {
    return RunnerEvent{
        id, RunError{text_of(object, "name"), text_of(object, "value"), traceback_of(object)}};
  }
  return RunnerUnknown{};
}

}  // namespace alcove::interpreter

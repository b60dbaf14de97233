// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_run.h"

#include <string_view>
#include <utility>
#include <variant>

#include <boost/json/array.hpp>
#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

namespace alcove::interpreter {
namespace {

namespace json = boost::json;

// Printed text that waits is put together up to here.
constexpr size_t kMostMerged = size_t{64} << 10;

std::string text_of(const json::object& object, std::string_view name) {
  const json::value* value = object.if_contains(name);
  return value != nullptr && value->is_string() ? std::string(value->get_string()) : std::string();
}

RunError error_of(const json::object& content) {
  RunError error{
      .name = text_of(content, "ename"), .value = text_of(content, "evalue"), .traceback = ""};
  const json::value* traceback = content.if_contains("traceback");
  if (traceback != nullptr && traceback->is_array()) {
    for (const json::value& line : traceback->get_array()) {
      if (line.is_string()) error.traceback += line.get_string();
    }
  }
  return error;
}

}  // namespace

void JupyterRun::take_published(const JupyterMessage& message, TimePoint now) {
  last_heard_ = now;
  const json::object& content = message.content;
  if (message.type == "status") {
    // The first status says busy; an idle before that is not this run's.
    const std::string state = text_of(content, "execution_state");
    idle_ = idle_ || state == "idle";
    return;
  }
  if (message.type == "execute_input") {
    accepted_ = true;
    accepted_at_ = now;
    const json::value* count = content.if_contains("execution_count");
    start(count != nullptr && count->is_int64() ? count->get_int64() : count_);
    return;
  }
  if (message.type == "stream") {
    const auto name = text_of(content, "name") == "stderr" ? StreamOutput::Name::kStderr
                                                           : StreamOutput::Name::kStdout;
    print(name, text_of(content, "text"));
  } else if (message.type == "display_data" || message.type == "execute_result") {
    const json::value* data = content.if_contains("data");
    if (data == nullptr || !data->is_object()) return;
    const auto kind = message.type == "display_data" ? Display::Kind::kDisplayed
                                                     : Display::Kind::kValueOfLastExpression;
    size_t bytes = 0;
    for (const auto& [type, value] : data->get_object()) {
      bytes += type.size() + (value.is_string() ? value.get_string().size() : 1024);
    }
    push(Display{.data = data->get_object(), .kind = kind}, bytes);
  } else if (message.type == "error" && !failed_) {
    failed_ = true;
    RunError error = error_of(content);
    const size_t bytes = error.value.size() + error.traceback.size();
    push(std::move(error), bytes);
  }
}

void JupyterRun::take_reply(const JupyterMessage& message, TimePoint now) {
  last_heard_ = now;
  replied_ = true;
  reply_ = message.content;
}

void JupyterRun::print(StreamOutput::Name name, std::string text) {
  if (text.empty() || kind_ == Kind::kSilent) return;
  if (!events_.empty()) {
    auto* last = std::get_if<StreamOutput>(&events_.back());
    if (last != nullptr && last->name == name && last->text.size() + text.size() <= kMostMerged) {
      last->text += text;
      bytes_ += text.size();
      sizes_.back() += text.size();
      return;
    }
  }
  const size_t bytes = text.size();
  push(StreamOutput{.name = name, .text = std::move(text)}, bytes);
}

bool JupyterRun::finished(TimePoint now) const {
  if (idle_ && replied_) return true;
  return (idle_ || replied_) && now >= give_up_at();
}

void JupyterRun::conclude() {
  start(count_);
  const std::string status = text_of(reply_, "status");
  if (failed_) return;
  if (status == "error") {
    push(error_of(reply_), 0);
  } else if (status == "abort" || status == "aborted") {
    push(RunError{.name = "ExecutionAborted", .value = "Execution was aborted", .traceback = ""},
         0);
  }
}

RunEvent JupyterRun::next_event() {
  RunEvent event = std::move(events_.front());
  events_.pop_front();
  bytes_ -= sizes_.front();
  sizes_.pop_front();
  return event;
}

void JupyterRun::push(RunEvent event, size_t bytes) {
  if (kind_ == Kind::kSilent) return;
  // The number comes first, even if the kernel's word of it was lost.
  start(count_);
  events_.push_back(std::move(event));
  sizes_.push_back(bytes);
  bytes_ += bytes;
}

void JupyterRun::start(int64_t count) {
  if (started_ || kind_ == Kind::kSilent) return;
  started_ = true;
  count_ = count;
  events_.push_back(RunStarted{.execution_count = count});
  sizes_.push_back(0);
}

}  // namespace alcove::interpreter

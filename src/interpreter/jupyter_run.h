// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>

#include "interpreter/jupyter_message.h"
#include "interpreter/kernel.h"

namespace alcove::interpreter {

// What a Jupyter kernel says about one request: its messages become events that wait to be taken.
class JupyterRun {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  enum class Kind { kUser, kSilent };
  // Between the last words of a kernel and our belief that it has lost the rest (its publisher
  // drops messages when its queue is full).
  static constexpr std::chrono::seconds kPatience{5};

  JupyterRun(std::string id, Kind kind, int64_t next_count)
      : id_(std::move(id)), kind_(kind), count_(next_count) {}

  const std::string& id() const { return id_; }
  void take_published(const JupyterMessage& message, TimePoint now);
  void take_reply(const JupyterMessage& message, TimePoint now);
  void print(StreamOutput::Name name, std::string text);

  // The kernel works on it.
  bool accepted() const { return accepted_; }
  TimePoint accepted_at() const { return accepted_at_; }
  bool finished(TimePoint now) const;
  TimePoint give_up_at() const { return last_heard_ + kPatience; }
  int64_t count() const { return count_; }
  // To be called once, when it is finished: says what the reply alone told.
  void conclude();

  bool has_event() const { return !events_.empty(); }
  // A guess at the memory that the waiting events take.
  size_t waiting_bytes() const { return bytes_; }
  RunEvent next_event();

 private:
  void push(RunEvent event, size_t bytes);
  void start(int64_t count);

  std::string id_;
  Kind kind_;
  int64_t count_;
  std::deque<RunEvent> events_;
  size_t bytes_ = 0;
  std::deque<size_t> sizes_;
  boost::json::object reply_;
  bool accepted_ = false;
  TimePoint accepted_at_;
  bool started_ = false;
  bool failed_ = false;
  bool idle_ = false;
  bool replied_ = false;
  TimePoint last_heard_ = TimePoint::max() - kPatience;
};

}  // namespace alcove::interpreter

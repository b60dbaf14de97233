// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "interpreter/kernel.h"
#include "interpreter/utf8.h"
#include "net/fd_stream.h"

namespace alcove::interpreter {

// One of the two pipes that a kernel's processes print into. What comes within a short time is one
// event, and a line that is printed in pieces stays together if they come in a longer one: Python's
// print() writes the line break by itself, and a sandbox that has used up its share of the
// processors stands still for up to 100 ms in between.
class OutputPipe {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kMergeTime{20};
  static constexpr std::chrono::milliseconds kPiecesTime{180};
  static constexpr size_t kMaxEvent = 64 * 1024;

  OutputPipe(StreamOutput::Name name, net::FdStream stream)
      : name_(name), stream_(std::move(stream)) {}

  net::FdStream& stream() { return stream_; }

  // Reads what is there, up to one event. True if the pipe is empty now (or at its end).
  bool collect();
  // When what was collected has to go out; nothing while there is none.
  std::optional<TimePoint> due() const;
  // What of it goes out then: whole lines, if there are any. The rest is due later.
  std::optional<RunEvent> take_due();
  // What was collected, if anything.
  std::optional<RunEvent> take();
  // Everything that had been printed before this call, and perhaps a little of what came since.
  std::vector<RunEvent> take_present();
  // Forgets that.
  void discard();
  // What was collected, at the end of a run: nothing more comes to complete a character.
  std::optional<RunEvent> take_last();
  bool closed() const { return closed_; }

 private:
  StreamOutput::Name name_;
  net::FdStream stream_;
  Utf8Decoder decoder_;
  std::string text_;
  TimePoint first_at_;
  bool closed_ = false;
};

}  // namespace alcove::interpreter

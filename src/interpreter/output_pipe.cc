// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/output_pipe.h"

#include <utility>

namespace alcove::interpreter {

bool OutputPipe::collect() {
  char buffer[16 * 1024];
  while (!closed_ && text_.size() < kMaxEvent) {
    const auto count = stream_.try_read(buffer);
    if (!count) return true;
    if (!*count || **count == 0) {
      closed_ = true;
      break;
    }
    if (text_.empty()) first_at_ = std::chrono::steady_clock::now();
    text_ += decoder_.decode({buffer, **count});
  }
  return closed_;
}

std::optional<OutputPipe::TimePoint> OutputPipe::due() const {
  if (text_.empty()) return {};
  return text_.size() >= kMaxEvent ? TimePoint::min() : first_at_ + kMergeTime;
}

std::optional<RunEvent> OutputPipe::take() {
  if (text_.empty()) return {};
  return StreamOutput{name_, std::exchange(text_, {})};
}

std::optional<RunEvent> OutputPipe::take_last() {
  text_ += decoder_.finish();
  return take();
}

void OutputPipe::discard() {
  for (bool empty = false; !empty;) {
    empty = collect();
    text_.clear();
  }
  (void)decoder_.finish();
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/output_pipe.h"

#include <sys/ioctl.h>

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
  if (text_.size() >= kMaxEvent) return TimePoint::min();
  return first_at_ + (text_.find('\n') != std::string::npos ? kMergeTime : kPiecesTime);
}

std::optional<RunEvent> OutputPipe::take_due() {
  const size_t lines = text_.rfind('\n') + 1;
  if (lines == 0 || lines == text_.size()) return take();
  std::string rest = text_.substr(lines);
  text_.resize(lines);
  auto event = take();
  text_ = std::move(rest);
  first_at_ = std::chrono::steady_clock::now();
  return event;
}

std::optional<RunEvent> OutputPipe::take() {
  if (text_.empty()) return {};
  return StreamOutput{name_, std::exchange(text_, {})};
}

std::vector<RunEvent> OutputPipe::take_present() {
  int present = 0;
  if (closed_ || ::ioctl(stream_.fd(), FIONREAD, &present) != 0) present = 0;
  // Not until it is empty: those who print may never pause.
  const size_t rounds = (text_.size() + static_cast<size_t>(present)) / kMaxEvent + 1;
  std::vector<RunEvent> events;
  for (size_t round = 0; round < rounds; ++round) {
    (void)collect();
    if (auto event = take()) events.push_back(*std::move(event));
  }
  return events;
}

std::optional<RunEvent> OutputPipe::take_last() {
  text_ += decoder_.finish();
  return take();
}

void OutputPipe::discard() {
  (void)take_present();
  (void)decoder_.finish();
}

}  // namespace alcove::interpreter

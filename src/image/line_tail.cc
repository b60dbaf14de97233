// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/line_tail.h"

namespace alcove::image {

void LineTail::append(std::string_view data) {
  for (const char c : data) {
    // Programs that draw progress bars end their lines with a carriage return alone.
    const bool second_half = c == '\n' && after_return_;
    after_return_ = c == '\r';
    if (second_half) continue;
    if (c == '\n' || c == '\r') {
      emit();
    } else {
      current_ += c;
      if (current_.size() >= kMaxLine) emit();
    }
  }
}

void LineTail::finish() {
  if (!current_.empty()) emit();
}

std::string LineTail::tail() const {
  std::string text;
  for (const std::string& line : kept_) {
    text += line;
    text += '\n';
  }
  return text;
}

void LineTail::emit() {
  if (on_line_) on_line_(current_);
  kept_.push_back(std::move(current_));
  current_.clear();
  if (kept_.size() > kKeptLines) kept_.pop_front();
}

}  // namespace alcove::image

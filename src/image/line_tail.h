// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>

namespace alcove::image {

// Cuts a byte stream into lines, passes them on, and keeps the last ones for an error message.
// Lines are cut at kMaxLine bytes, so that hostile output cannot make it grow.
class LineTail {
 public:
  static constexpr size_t kMaxLine = 4096;
  static constexpr size_t kKeptLines = 30;

  explicit LineTail(std::function<void(std::string_view)> on_line) : on_line_(std::move(on_line)) {}

  void append(std::string_view data);
  // Passes on a last line that has no end.
  void finish();
  // The kept lines, each with its end.
  std::string tail() const;

 private:
  void emit();

  std::function<void(std::string_view)> on_line_;
  std::string current_;
  bool after_return_ = false;
  std::deque<std::string> kept_;
};

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <utility>
#include <vector>

namespace alcove {

// Runs a function when the scope ends.
template <typename F>
class Defer {
 public:
  explicit Defer(F function) : function_(std::move(function)) {}
  Defer(const Defer&) = delete;
  Defer& operator=(const Defer&) = delete;
  ~Defer() { function_(); }

 private:
  F function_;
};

// Undo steps of a multi-step creation, run in reverse order unless release() is called.
class Rollback {
 public:
  Rollback() = default;
  Rollback(const Rollback&) = delete;
  Rollback& operator=(const Rollback&) = delete;
  ~Rollback() {
    for (auto undo = undo_.rbegin(); undo != undo_.rend(); ++undo) (*undo)();
  }
  void add(std::function<void()> undo) { undo_.push_back(std::move(undo)); }
  void release() { undo_.clear(); }

 private:
  std::vector<std::function<void()>> undo_;
};

}  // namespace alcove

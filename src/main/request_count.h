// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace alcove {

// How many requests are under way, on whatever threads; for an end that waits for them.
class RequestCount {
 public:
  // Counts from its construction to its destruction.
  class Mark {
   public:
    explicit Mark(RequestCount& count) : count_(count) { count_.add(); }
    ~Mark() { count_.subtract(); }
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;

   private:
    RequestCount& count_;
  };

  // True as soon as none is under way, false if that takes longer.
  bool wait_for_none(std::chrono::milliseconds limit) {
    std::unique_lock lock(mutex_);
    return none_.wait_for(lock, limit, [this] { return count_ == 0; });
  }

 private:
  void add() {
    const std::lock_guard lock(mutex_);
    ++count_;
  }
  void subtract() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) none_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable none_;
  size_t count_ = 0;
};

}  // namespace alcove

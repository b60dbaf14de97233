// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

namespace alcove {

// Wall-clock time with the resolution that the API shows (microseconds).
using WallTime = std::chrono::time_point<std::chrono::system_clock, std::chrono::microseconds>;

// Where "now" comes from; tests put their own in.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual WallTime now() const = 0;
};

class SystemClock final : public Clock {
 public:
  WallTime now() const override {
    return std::chrono::time_point_cast<std::chrono::microseconds>(
        std::chrono::system_clock::now());
  }
};

class FakeClock final : public Clock {
 public:
  WallTime now() const override { return now_; }
  void set(WallTime now) { now_ = now; }
  void advance(std::chrono::microseconds by) { now_ += by; }

 private:
  WallTime now_{};
};

}  // namespace alcove

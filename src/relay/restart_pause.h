// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace alcove::relay {

// When the next try to reach or start a relay may begin. After one that has lived for a while it
// is at once; when tries follow each other, they are further and further apart.
class RestartPause {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Duration = std::chrono::steady_clock::duration;

  static constexpr Duration kFirst = std::chrono::milliseconds(250);
  static constexpr Duration kLongest = std::chrono::seconds(5);
  // A relay that has lived so long does not die of its start.
  static constexpr Duration kHealthy = std::chrono::seconds(10);

  TimePoint next() const { return last_ ? *last_ + pause_ : TimePoint::min(); }

  void begin(TimePoint now) {
    pause_ = last_ && now - *last_ < kHealthy ? std::min(2 * pause_, kLongest) : kFirst;
    last_ = now;
  }

 private:
  std::optional<TimePoint> last_;
  Duration pause_ = kFirst;
};

}  // namespace alcove::relay

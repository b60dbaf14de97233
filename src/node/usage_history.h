// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "node/node.h"
#include "sandbox/driver.h"

namespace alcove::node {

// What a sandbox used over the last 24 hours: all measurements of the last hour, then fewer the
// older they are. Takes memory as it fills: 14 KB after an hour, 37 KB after a day. Not
// thread-safe.
class UsageHistory {
 public:
  // How often the meter adds one.
  static constexpr std::chrono::seconds kPeriod{5};

  // `birth` is when the sandbox had used nothing yet.
  UsageHistory(WallTime birth, uint32_t cpu_count) : birth_(birth), cpu_count_(cpu_count) {}

  // One moment by both clocks.
  struct Moment {
    WallTime wall;
    std::chrono::steady_clock::time_point steady;
  };
  // `usage` counts from the birth. Moments must increase by the steady clock; one that does not is
  // dropped. When somebody sets the wall clock, the times of all measurements follow it.
  void add(const Moment& moment, const sandbox::Usage& usage, uint64_t disk_used_bytes);

  // Oldest first, bounds included, thinned out by the length of the range (control-plane.md 4.8).
  // The CPU share of each is that of the time since the one before.
  std::vector<Measurement> between(WallTime from, WallTime until) const;
  std::optional<Measurement> last() const;

 private:
  // 20 bytes: a thousand sandboxes have a million of them.
  struct Point {
    uint32_t milliseconds = 0;  // since the birth, by the steady clock
    uint32_t cpu_ticks = 0;     // of 100 us, since the birth; wraps around
    uint32_t memory_kib = 0;
    uint32_t cache_kib = 0;
    uint32_t disk_kib = 0;
  };
  struct Tier {
    std::deque<Point> points;
    // How many it has handed on or dropped.
    uint32_t left = 0;
  };

  void add_to_tier(size_t index, const Point& point);
  Measurement measure(const Point& before, const Point& point) const;
  WallTime time_of(const Point& point) const {
    return birth_ + std::chrono::milliseconds(point.milliseconds);
  }

  // The same moment by both clocks; the steady one's is known from the first measurement on.
  WallTime birth_;
  std::optional<std::chrono::steady_clock::time_point> steady_birth_;
  uint32_t cpu_count_;
  // The newest first.
  std::array<Tier, 3> tiers_;
};

}  // namespace alcove::node

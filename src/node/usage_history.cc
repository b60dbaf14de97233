// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/usage_history.h"

#include <algorithm>
#include <limits>

#include "node/clock_mark.h"

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

// An hour of every measurement, five hours of every sixth, 18 hours of every fourth of those.
struct TierRule {
  size_t capacity;
  // One in so many goes on to the next tier.
  uint32_t keep_every;
};
constexpr std::array<TierRule, 3> kRules = {{{720, 6}, {600, 4}, {540, 1}}};

WallTime::duration step_for(WallTime::duration range) {
  if (range < 1h) return 0s;
  if (range < 6h) return 30s;
  if (range < 12h) return 60s;
  if (range < 24h) return 120s;
  if (range < 7 * 24h) return 300s;
  return 900s;
}

uint32_t to_kib(uint64_t bytes) {
  return static_cast<uint32_t>(
      std::min<uint64_t>((bytes + 1023) / 1024, std::numeric_limits<uint32_t>::max()));
}

}  // namespace

void UsageHistory::add(const Moment& moment, const sandbox::Usage& usage,
                       uint64_t disk_used_bytes) {
  // A clock that was set back before the first measurement makes the sandbox one that is just born.
  if (!steady_birth_) steady_birth_ = moment.steady - std::max(moment.wall - birth_, 0us);
  const auto since = moment.steady - *steady_birth_;
  const auto age = std::chrono::duration_cast<std::chrono::milliseconds>(since).count();
  const std::deque<Point>& newest = tiers_.front().points;
  const int64_t last = newest.empty() ? 0 : newest.back().milliseconds;
  if (age <= last || age > std::numeric_limits<uint32_t>::max()) return;
  const WallTime birth = moment.wall - std::chrono::duration_cast<WallTime::duration>(since);
  if (std::chrono::abs(birth - birth_) >= kSmallestClockStep) birth_ = birth;
  const uint64_t cache = std::min(usage.memory_cache_bytes, usage.memory_bytes);
  add_to_tier(0, {.milliseconds = static_cast<uint32_t>(age),
                  .cpu_ticks = static_cast<uint32_t>(usage.cpu_microseconds / 100),
                  .memory_kib = to_kib(usage.memory_bytes - cache),
                  .cache_kib = to_kib(cache),
                  .disk_kib = to_kib(disk_used_bytes)});
}

void UsageHistory::add_to_tier(size_t index, const Point& point) {
  Tier& tier = tiers_[index];
  tier.points.push_back(point);
  if (tier.points.size() <= kRules[index].capacity) return;
  const Point oldest = tier.points.front();
  tier.points.pop_front();
  if (++tier.left % kRules[index].keep_every == 0 && index + 1 < tiers_.size()) {
    add_to_tier(index + 1, oldest);
  }
}

Measurement UsageHistory::measure(const Point& before, const Point& point) const {
  const double used = static_cast<double>(point.cpu_ticks - before.cpu_ticks) / 10;
  const double had = static_cast<double>(point.milliseconds - before.milliseconds) * cpu_count_;
  return {.time = time_of(point),
          .cpu_used_percent = had > 0 ? std::min(used / had * 100, 100.0) : 0,
          .memory_used_bytes = uint64_t{point.memory_kib} * 1024,
          .memory_cache_bytes = uint64_t{point.cache_kib} * 1024,
          .disk_used_bytes = uint64_t{point.disk_kib} * 1024};
}

std::vector<Measurement> UsageHistory::between(WallTime from, WallTime until) const {
  std::vector<Measurement> found;
  const std::deque<Point>& newest = tiers_.front().points;
  if (newest.empty()) return found;
  const auto range = std::min(until, time_of(newest.back())) - std::max(from, birth_);
  // A measurement comes a little early or late; that must not double the step.
  const auto step = std::max<WallTime::duration>(step_for(range) - kPeriod / 2, 0s);
  Point before;
  for (auto tier = tiers_.rbegin(); tier != tiers_.rend(); ++tier) {
    for (const Point& point : tier->points) {
      if (time_of(point) > until) return found;
      if (!found.empty() && time_of(point) - found.back().time < step) continue;
      if (time_of(point) >= from) found.push_back(measure(before, point));
      before = point;
    }
  }
  return found;
}

std::optional<Measurement> UsageHistory::last() const {
  const std::deque<Point>& newest = tiers_.front().points;
  if (newest.empty()) return std::nullopt;
  const Point before = newest.size() > 1 ? newest[newest.size() - 2] : Point{};
  return measure(before, newest.back());
}

}  // namespace alcove::node

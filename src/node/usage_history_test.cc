// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/usage_history.h"

#include <gtest/gtest.h>

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

const WallTime kBirth(std::chrono::microseconds(1'800'000'000'123'456));
constexpr uint64_t kMiB = 1 << 20;

WallTime at(std::chrono::milliseconds age) {
  // The history has milliseconds.
  return kBirth + age;
}

const std::chrono::steady_clock::time_point kSteadyBirth(1000h);

// With a wall clock that was set by so much after the birth.
UsageHistory::Moment moment(std::chrono::milliseconds age, std::chrono::milliseconds set_by = 0ms) {
  return {.wall = at(age + set_by), .steady = kSteadyBirth + age};
}

// One CPU busy all the time, measured every five seconds until `age`.
UsageHistory busy_until(std::chrono::seconds age, uint32_t cpu_count) {
  UsageHistory history(kBirth, cpu_count);
  for (auto now = 5s; now <= age; now += 5s) {
    history.add(moment(now), {.cpu_microseconds = static_cast<uint64_t>(now / 1us)}, 0);
  }
  return history;
}

TEST(UsageHistory, IsEmptyAtFirst) {
  const UsageHistory history(kBirth, 2);
  EXPECT_TRUE(history.between(WallTime::min(), WallTime::max()).empty());
  EXPECT_FALSE(history.last());
}

TEST(UsageHistory, ShowsWhatWasAdded) {
  UsageHistory history(kBirth, 2);
  history.add(
      moment(1s),
      {.memory_bytes = 100 * kMiB, .memory_cache_bytes = 30 * kMiB, .cpu_microseconds = 1'000'000},
      7 * kMiB);
  const auto first = history.last();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->time, at(1s));
  EXPECT_EQ(first->memory_used_bytes, 70 * kMiB);
  EXPECT_EQ(first->memory_cache_bytes, 30 * kMiB);
  EXPECT_EQ(first->disk_used_bytes, 7 * kMiB);
  // One of two CPUs since the birth.
  EXPECT_DOUBLE_EQ(first->cpu_used_percent, 50);
  history.add(moment(6s), {.cpu_microseconds = 1'500'000}, 0);
  EXPECT_DOUBLE_EQ(history.last()->cpu_used_percent, 5);
  const auto both = history.between(WallTime::min(), WallTime::max());
  ASSERT_EQ(both.size(), 2u);
  EXPECT_DOUBLE_EQ(both[0].cpu_used_percent, 50);
  EXPECT_DOUBLE_EQ(both[1].cpu_used_percent, 5);
}

TEST(UsageHistory, ClocksThatStepBackAndOddCountsDoNoHarm) {
  UsageHistory history(kBirth, 1);
  history.add(moment(-5s), {}, 0);
  EXPECT_FALSE(history.last());
  history.add(moment(10s), {.memory_bytes = 1, .memory_cache_bytes = 2}, UINT64_MAX);
  history.add(moment(10s), {}, 0);
  history.add(moment(9s), {}, 0);
  ASSERT_EQ(history.between(WallTime::min(), WallTime::max()).size(), 1u);
  EXPECT_EQ(history.last()->memory_used_bytes, 0u);
  // More than all CPUs can: read a moment later than the time.
  history.add(moment(11s), {.cpu_microseconds = 1'010'000}, 0);
  EXPECT_DOUBLE_EQ(history.last()->cpu_used_percent, 100);
}

TEST(UsageHistory, AClockThatIsSetMovesTheTimesAndLosesNothing) {
  for (const auto step : {-1h, 1h}) {
    UsageHistory history(kBirth, 1);
    for (auto age = 5s; age <= 60s; age += 5s) {
      const auto set_by = age > 30s ? step : 0h;
      history.add(moment(age, set_by), {.cpu_microseconds = static_cast<uint64_t>(age / 1us)}, 0);
      ASSERT_TRUE(history.last());
      EXPECT_EQ(history.last()->time, at(age + set_by));
      EXPECT_DOUBLE_EQ(history.last()->cpu_used_percent, 100);
    }
    const auto all = history.between(WallTime::min(), WallTime::max());
    ASSERT_EQ(all.size(), 12u);
    EXPECT_EQ(all.front().time, at(5s + step));
    // What API clients ask for: the last minute of the clock as it is now.
    EXPECT_EQ(history.between(at(step), at(60s + step)).size(), 12u);
  }
}

TEST(UsageHistory, AClockThatWasSetBackBeforeTheFirstMeasurementDoesNoHarm) {
  UsageHistory history(kBirth, 1);
  for (auto age = 5s; age <= 60s; age += 5s) history.add(moment(age, -1h), {}, 0);
  EXPECT_EQ(history.between(WallTime::min(), WallTime::max()).size(), 11u);
  EXPECT_EQ(history.last()->time, at(60s - 1h));
}

TEST(UsageHistory, TimesStayWhileTheClockIsKeptRight) {
  UsageHistory history(kBirth, 1);
  history.add(moment(5s), {}, 0);
  history.add(moment(10s, 20ms), {}, 0);
  history.add(moment(15s, -20ms), {}, 0);
  const auto all = history.between(WallTime::min(), WallTime::max());
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].time, at(5s));
  EXPECT_EQ(all[1].time, at(10s));
  EXPECT_EQ(all[2].time, at(15s));
}

TEST(UsageHistory, RangesIncludeTheirBounds) {
  const UsageHistory history = busy_until(60s, 1);
  const auto some = history.between(at(10s), at(20s));
  ASSERT_EQ(some.size(), 3u);
  EXPECT_EQ(some.front().time, at(10s));
  EXPECT_EQ(some.back().time, at(20s));
  EXPECT_DOUBLE_EQ(some.front().cpu_used_percent, 100);
  EXPECT_TRUE(history.between(WallTime::min(), kBirth).empty());
  EXPECT_TRUE(history.between(at(61s), WallTime::max()).empty());
  EXPECT_TRUE(history.between(at(20s), at(10s)).empty());
}

TEST(UsageHistory, LongRangesHaveFewer) {
  const UsageHistory history = busy_until(24h, 2);
  struct Case {
    std::chrono::seconds from, until, step;
  };
  for (const Case& each : {Case{23h + 30min, 24h, 5s}, Case{20h, 24h, 30s}, Case{13h, 24h, 60s},
                           Case{2h, 24h, 120s}, Case{0s, 24h, 300s}}) {
    const auto found = history.between(at(each.from), at(each.until));
    ASSERT_GT(found.size(), 100u) << each.from.count();
    EXPECT_GE(found.back().time, at(each.until - each.step)) << each.from.count();
    for (size_t i = 1; i < found.size(); ++i) {
      EXPECT_GE(found[i].time - found[i - 1].time, each.step) << each.from.count();
      EXPECT_LE(found[i].time - found[i - 1].time, each.step + 120s) << each.from.count();
    }
    // Averages stay averages.
    for (const Measurement& point : found) EXPECT_NEAR(point.cpu_used_percent, 50, 0.001);
  }
}

TEST(UsageHistory, CoversADayInBoundedMemory) {
  const UsageHistory history = busy_until(48h, 1);
  const auto all = history.between(at(47h + 1s), at(48h));
  EXPECT_EQ(all.size(), 720u);
  const auto day = history.between(WallTime::min(), WallTime::max());
  EXPECT_LE(day.front().time, at(24h + 5min));
  EXPECT_GE(day.front().time, at(23h));
}

}  // namespace
}  // namespace alcove::node

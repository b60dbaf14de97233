// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/meter.h"

#include <gtest/gtest.h>

#include <atomic>

#include "node/testing/fake_driver.h"

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

// Says how much each sandbox has, after a while.
class FakeDisks final : public image::UpperPool {
 public:
  std::string kind() const override { return "fake"; }
  Result<image::Upper> create(const SandboxId&, uint64_t) override { return image::Upper{}; }
  image::Upper find(const SandboxId&) const override { return {}; }
  Result<void> remove(const SandboxId&) override { return {}; }
  Result<std::vector<SandboxId>> list() const override { return std::vector<SandboxId>(); }
  Result<uint64_t> used_bytes(const SandboxId&) const override {
    ++asked;
    std::this_thread::sleep_for(delay);
    if (used == 0) return fail(Code::kInternal, "no disk today");
    return used.load();
  }
  Result<image::PoolSpace> space() const override { return image::PoolSpace{}; }
  Result<void> set_limit(const SandboxId&, uint64_t) override { return {}; }

  mutable std::atomic<int> asked{0};
  std::atomic<uint64_t> used{4096};
  std::chrono::milliseconds delay{0};
};

class MeterTest : public ::testing::Test {
 protected:
  MeterTest() { clock_.set(WallTime(std::chrono::seconds(1'800'000'000))); }

  std::shared_ptr<RunningSandbox> add(const std::string& id, std::chrono::seconds age = 0s) {
    store::Sandbox record;
    record.id = SandboxId(id);
    record.vcpu_count = 2;
    record.started_at = clock_.now() - age;
    sandbox::BootSpec spec;
    spec.id = record.id;
    auto machine = driver_.boot(spec);
    sandboxes_.push_back(
        std::make_shared<RunningSandbox>(std::move(record), "fake", std::move(*machine)));
    return sandboxes_.back();
  }

  void advance(std::chrono::seconds by) {
    clock_.advance(by);
    now_ += by;
    meter_.measure_due(now_);
  }
  static size_t count(const std::shared_ptr<RunningSandbox>& sandbox) {
    return sandbox->measurements(WallTime::min(), WallTime::max()).size();
  }

  FakeClock clock_;
  std::chrono::steady_clock::time_point now_ = std::chrono::steady_clock::now();
  testing::FakeDriver driver_;
  FakeDisks disks_;
  Meter::Sandboxes sandboxes_;
  Meter meter_{[this] { return sandboxes_; }, disks_, clock_};
};

TEST_F(MeterTest, MeasuresSoonAndThenEveryFiveSeconds) {
  const auto sandbox = add("i1");
  driver_.state->usage = sandbox::Usage{.memory_bytes = 2048, .cpu_microseconds = 1'000'000};
  advance(1s);
  ASSERT_EQ(count(sandbox), 1u);
  EXPECT_EQ(sandbox->last_measurement()->memory_used_bytes, 2048u);
  EXPECT_EQ(sandbox->last_measurement()->disk_used_bytes, 4096u);
  EXPECT_DOUBLE_EQ(sandbox->last_measurement()->cpu_used_percent, 50);
  for (int i = 0; i < 4; ++i) advance(1s);
  EXPECT_EQ(count(sandbox), 1u);
  advance(1s);
  EXPECT_EQ(count(sandbox), 2u);
  // After a long sleep it does not catch up with a burst.
  advance(60s);
  advance(1s);
  EXPECT_EQ(count(sandbox), 3u);
}

TEST_F(MeterTest, OldSandboxesFoundAtOnceAreSpread) {
  for (int i = 0; i < 100; ++i) add("i" + std::to_string(i), 3600s);
  meter_.measure_due(now_);
  size_t most = 0;
  size_t before = 0;
  for (int second = 0; second < 5; ++second) {
    advance(1s);
    size_t measured = 0;
    for (const auto& sandbox : sandboxes_) measured += count(sandbox);
    most = std::max(most, measured - before);
    before = measured;
  }
  EXPECT_EQ(before, 100u);
  EXPECT_LT(most, 50u);
}

TEST_F(MeterTest, GoesOnWhenTheClockIsSetBack) {
  const auto sandbox = add("i1");
  advance(1s);
  advance(5s);
  clock_.advance(-1h);
  advance(5s);
  EXPECT_EQ(count(sandbox), 3u);
  EXPECT_LE(sandbox->last_measurement()->time, clock_.now());
}

TEST_F(MeterTest, AFailureSkipsOneMeasurement) {
  const auto sandbox = add("i1");
  driver_.state->usage = fail(Code::kNotFound, "no such cgroup");
  disks_.used = 0;
  advance(1s);
  EXPECT_EQ(count(sandbox), 0u);
  driver_.state->usage = sandbox::Usage{};
  advance(5s);
  EXPECT_EQ(count(sandbox), 1u);
  EXPECT_EQ(sandbox->last_measurement()->disk_used_bytes, 0u);
}

TEST_F(MeterTest, ASlowDiskIsAskedSeldom) {
  const auto sandbox = add("i1");
  disks_.delay = 100ms;
  advance(1s);
  EXPECT_EQ(disks_.asked, 1);
  advance(5s);
  advance(5s);
  EXPECT_EQ(disks_.asked, 1);
  EXPECT_EQ(count(sandbox), 3u);
  EXPECT_EQ(sandbox->last_measurement()->disk_used_bytes, 4096u);
  advance(20s);
  EXPECT_EQ(disks_.asked, 2);
}

TEST_F(MeterTest, TheThreadMeasuresByItselfAndStops) {
  const auto sandbox = add("i1");
  clock_.advance(1s);
  meter_.start();
  for (int i = 0; i < 2000 && count(sandbox) == 0; ++i) std::this_thread::sleep_for(5ms);
  EXPECT_EQ(count(sandbox), 1u);
  meter_.stop();
  meter_.stop();
}

}  // namespace
}  // namespace alcove::node

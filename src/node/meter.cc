// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/meter.h"

#include <pthread.h>

#include <utility>

namespace alcove::node {
namespace {

using Steady = std::chrono::steady_clock;

constexpr std::chrono::seconds kTick{1};
// Asking the pool may mean walking a whole tree (plain directories): that takes at most this share
// of the time.
constexpr int kDiskShare = 200;

// Sandboxes that an earlier server left are all found at once: their turns are spread.
Steady::duration first_wait(const RunningSandbox& sandbox, const Clock& clock) {
  if (clock.now() - sandbox.record().started_at < UsageHistory::kPeriod) return {};
  constexpr auto kPeriod = std::chrono::milliseconds(UsageHistory::kPeriod);
  const auto spread =
      std::hash<SandboxId>()(sandbox.record().id) % static_cast<size_t>(kPeriod.count());
  return std::chrono::milliseconds(spread);
}

}  // namespace

Meter::Meter(std::function<Sandboxes()> list, const image::UpperPool& uppers, const Clock& clock)
    : list_(std::move(list)), uppers_(uppers), clock_(clock) {}

Meter::~Meter() { stop(); }

void Meter::start() {
  thread_ = std::thread([this] { run(); });
}

void Meter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void Meter::run() {
  pthread_setname_np(pthread_self(), "meter");
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kTick, [this] { return stopping_; })) {
    lock.unlock();
    measure_due(Steady::now());
    lock.lock();
  }
}

void Meter::measure_due(Steady::time_point now) {
  ++round_;
  round_began_ = Steady::now();
  for (const std::shared_ptr<RunningSandbox>& sandbox : list_()) {
    const auto [at, fresh] = turns_.try_emplace(sandbox->record().id);
    Turn& turn = at->second;
    turn.seen = round_;
    if (fresh) turn.next = now + first_wait(*sandbox, clock_);
    if (turn.next > now) continue;
    measure(*sandbox, turn, now);
    // On the grid, unless the machine was asleep.
    turn.next += UsageHistory::kPeriod;
    if (turn.next <= now) turn.next = now + UsageHistory::kPeriod;
  }
  std::erase_if(turns_, [this](const auto& entry) { return entry.second.seen != round_; });
}

void Meter::measure(RunningSandbox& sandbox, Turn& turn, Steady::time_point now) {
  if (now >= turn.disk_next) {
    const auto begin = Steady::now();
    const auto used = uppers_.used_bytes(sandbox.record().id);
    if (used) turn.disk_bytes = *used;
    turn.disk_next = now + kDiskShare * (Steady::now() - begin);
  }
  // Fails for one that is just being removed.
  const auto usage = sandbox.machine().usage();
  if (!usage) return;
  // The round may be at it for a while.
  const Steady::time_point at = now + (Steady::now() - round_began_);
  sandbox.add_measurement({.wall = clock_.now(), .steady = at}, *usage, turn.disk_bytes);
}

}  // namespace alcove::node

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "base/ids.h"

namespace alcove::gateway {

// Remembers in which sandboxes something was started, got input or ended a moment ago, so that a
// port that is still closed there may be about to open. Shared by all loops, without locks: a slot
// that two sandboxes share costs one of them a few needless retries.
class RecentStarts {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  void note(const SandboxId& id, TimePoint now) {
    slot(id).store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  bool within(const SandboxId& id, TimePoint now,
              std::chrono::steady_clock::duration window) const {
    const int64_t then = slot(id).load(std::memory_order_relaxed);
    return then != 0 && now.time_since_epoch().count() - then < window.count();
  }

 private:
  static constexpr size_t kSlots = 4096;
  const std::atomic<int64_t>& slot(const SandboxId& id) const {
    return slots_[std::hash<SandboxId>{}(id) % kSlots];
  }
  std::atomic<int64_t>& slot(const SandboxId& id) {
    return slots_[std::hash<SandboxId>{}(id) % kSlots];
  }

  std::array<std::atomic<int64_t>, kSlots> slots_{};
};

}  // namespace alcove::gateway

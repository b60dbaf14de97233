// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "image/upper_pool.h"
#include "node/running_sandbox.h"

namespace alcove::node {

// Measures every running sandbox from outside, once soon after its creation and then every five
// seconds: CPU and memory from its cgroups, disk from the pool. On a thread of its own, so that
// neither the loops nor creates wait for it. A burst of sandboxes is spread over the seconds as
// their creations were.
class Meter {
 public:
  using Sandboxes = std::vector<std::shared_ptr<RunningSandbox>>;

  // Whoever is named here outlives the meter.
  Meter(std::function<Sandboxes()> list, const image::UpperPool& uppers, const Clock& clock);
  ~Meter();
  Meter(const Meter&) = delete;
  Meter& operator=(const Meter&) = delete;

  void start();
  // Waits for the measurement under way. Idempotent.
  void stop();

  // Measures those whose turn it is: what the thread does every second.
  void measure_due(std::chrono::steady_clock::time_point now);

 private:
  struct Turn {
    std::chrono::steady_clock::time_point next;
    // What the disk said last, and when to ask again.
    uint64_t disk_bytes = 0;
    std::chrono::steady_clock::time_point disk_next;
    uint64_t seen = 0;
  };

  void run();
  void measure(RunningSandbox& sandbox, Turn& turn, std::chrono::steady_clock::time_point now);

  std::function<Sandboxes()> list_;
  const image::UpperPool& uppers_;
  const Clock& clock_;
  std::unordered_map<SandboxId, Turn> turns_;
  uint64_t round_ = 0;
  std::chrono::steady_clock::time_point round_began_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace alcove::node

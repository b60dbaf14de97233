// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "node/node.h"
#include "node/usage_history.h"

namespace alcove::node {

// A LiveSandbox with its machine. Shared by the node's registry and by requests under way.
class RunningSandbox final : public LiveSandbox {
 public:
  RunningSandbox(store::Sandbox record, std::string isolation_class,
                 std::unique_ptr<sandbox::Machine> machine);

  const store::Sandbox& record() const override { return record_; }
  WallTime end_at() const override;
  bool running() const override { return running_.load(std::memory_order_acquire); }
  std::string isolation_class() const override { return isolation_class_; }
  Result<UniqueFd> connect(uint16_t port, sandbox::Machine::Family family) override;
  // The callbacks run under a lock: they must only post work, never call back in here.
  uint64_t on_end(std::function<void()> callback) override;
  void forget_end(uint64_t registration) override;

  std::vector<Measurement> measurements(WallTime from, WallTime until) const override;
  std::optional<Measurement> last_measurement() const override;

  // When its time is over: what the API shows, and the same moment by the clock that nobody sets.
  struct End {
    WallTime at;
    std::chrono::steady_clock::time_point expiry;
  };
  End end_time() const;
  void set_end(End end);
  // Held while the end is changed and stored, so that both agree.
  std::mutex& end_mutex() { return end_mutex_; }
  void add_measurement(const UsageHistory::Moment& moment, const sandbox::Usage& usage,
                       uint64_t disk_used_bytes);
  // A line of the log that this server adds; the last ones are kept.
  void note(LogEntry entry);
  Log notes() const;
  // Kills the processes and tells everyone who registered. True for the caller that did it.
  bool end();
  // The record with the current end.
  store::Sandbox current_record() const;
  sandbox::Machine& machine() { return *machine_; }

 private:
  const store::Sandbox record_;
  const std::string isolation_class_;
  const std::unique_ptr<sandbox::Machine> machine_;
  std::atomic<bool> running_{true};
  std::mutex end_mutex_;
  std::mutex mutex_;
  uint64_t next_registration_ = 1;
  std::map<uint64_t, std::function<void()>> on_end_;
  // Guards what follows; never held together with the other.
  mutable std::mutex records_mutex_;
  End end_;
  UsageHistory history_;
  std::deque<LogEntry> notes_;
};

}  // namespace alcove::node

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "node/node.h"

namespace alcove::node::testing {

// A sandbox that is only a record. Thread-safe.
class FakeSandbox final : public LiveSandbox {
 public:
  explicit FakeSandbox(store::Sandbox record)
      : record_(std::move(record)), end_at_(record_.end_at) {}

  // Called by connect(); without it every port is closed. Set it before other threads call.
  std::function<Result<UniqueFd>(uint16_t port, sandbox::Machine::Family family)> on_connect;

  const store::Sandbox& record() const override { return record_; }
  WallTime end_at() const override {
    const std::lock_guard lock(mutex_);
    return end_at_;
  }
  bool running() const override {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  std::string isolation_class() const override { return "fake"; }

  Result<UniqueFd> connect(uint16_t port, sandbox::Machine::Family family) override {
    if (on_connect) return on_connect(port, family);
    return fail(Code::kUnavailable, cat("port ", port, " is closed"));
  }

  std::vector<Measurement> measurements(WallTime from, WallTime until) const override {
    const std::lock_guard lock(mutex_);
    std::vector<Measurement> found = measured_;
    std::erase_if(found,
                  [&](const Measurement& each) { return each.time < from || each.time > until; });
    return found;
  }
  std::optional<Measurement> last_measurement() const override {
    const std::lock_guard lock(mutex_);
    return measured_.empty() ? std::nullopt : std::optional(measured_.back());
  }
  void add_measurement(Measurement measurement) {
    const std::lock_guard lock(mutex_);
    measured_.push_back(measurement);
  }

  uint64_t on_end(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (running_) {
        callbacks_.emplace(++registrations_, std::move(callback));
        return registrations_;
      }
    }
    callback();
    return 0;
  }
  void forget_end(uint64_t registration) override {
    const std::lock_guard lock(mutex_);
    callbacks_.erase(registration);
  }

  void set_end(WallTime end_at) {
    const std::lock_guard lock(mutex_);
    end_at_ = end_at;
  }
  void end() {
    std::map<uint64_t, std::function<void()>> callbacks;
    {
      const std::lock_guard lock(mutex_);
      running_ = false;
      callbacks.swap(callbacks_);
    }
    for (const auto& [registration, callback] : callbacks) callback();
  }

 private:
  const store::Sandbox record_;
  mutable std::mutex mutex_;
  WallTime end_at_;
  bool running_ = true;
  std::vector<Measurement> measured_;
  uint64_t registrations_ = 0;
  std::map<uint64_t, std::function<void()>> callbacks_;
};

// A node whose sandboxes are records in memory, with failures on demand. Thread-safe except for
// the public members, which are set before other threads call.
class FakeNode final : public Node {
 public:
  explicit FakeNode(const Clock& clock) : clock_(clock) {}

  // The answer of the next calls, instead of doing it.
  std::optional<Error> create_error;
  std::optional<Error> kill_error;
  std::optional<Error> set_end_error;
  std::optional<Error> read_log_error;
  // What find_unclear() finds. Set it before other threads call.
  std::map<SandboxId, TeamId> unclear;
  // Awaited by kill() after the sandbox has stopped being found, before it returns.
  std::function<Task<void>()> during_kill;

  // What read_log() gives for it to its team, whether it runs or not.
  void put_log(const SandboxId& id, const TeamId& team, Log log) {
    const std::lock_guard lock(mutex_);
    logs_[id] = {team, std::move(log)};
  }

  // What the last create was asked for.
  std::optional<CreateRequest> last_request() const {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

  // Makes a sandbox as if it had been there before.
  std::shared_ptr<FakeSandbox> add(store::Sandbox record) {
    auto sandbox = std::make_shared<FakeSandbox>(std::move(record));
    const std::lock_guard lock(mutex_);
    sandboxes_[sandbox->record().id] = sandbox;
    return sandbox;
  }

  Task<Result<LiveSandboxPtr>> create(CreateRequest request) override {
    {
      const std::lock_guard lock(mutex_);
      last_request_ = request;
    }
    if (create_error) co_return fail(*create_error);
    store::Sandbox record;
    record.id = request.id;
    record.team = request.team;
    record.template_id = request.template_record.id;
    record.template_alias = request.template_record.name;
    record.build = request.template_record.build;
    record.started_at = clock_.now();
    record.end_at = record.started_at + request.timeout;
    record.vcpu_count = 2;
    record.memory_bytes = 1024ull << 20;
    record.disk_bytes = 10240ull << 20;
    record.metadata = request.metadata;
    record.secure = request.agent_access == CreateRequest::Access::kToken;
    if (record.secure) record.envd_token = "envd-" + record.id.str();
    if (request.traffic_access == CreateRequest::Access::kToken) {
      record.traffic_token = "traffic-" + record.id.str();
    }
    record.allow_internet_access = request.allow_internet_access;
    record.network_json = request.network_json;
    record.mcp_json = request.mcp_json;
    co_return add(std::move(record));
  }

  LiveSandboxPtr find(const SandboxId& id) const override { return find_fake(id); }

  std::vector<LiveSandboxPtr> list() const override {
    const std::lock_guard lock(mutex_);
    std::vector<LiveSandboxPtr> all;
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
    return all;
  }

  std::optional<TeamId> find_unclear(const SandboxId& id) const override {
    const auto found = unclear.find(id);
    return found == unclear.end() ? std::nullopt : std::optional(found->second);
  }

  // A kill that finds another one under way succeeds with it, as the real node's does.
  Task<Result<bool>> kill(SandboxId id) override {
    if (kill_error) co_return fail(*kill_error);
    std::shared_ptr<FakeSandbox> sandbox;
    {
      const std::lock_guard lock(mutex_);
      const auto found = sandboxes_.find(id);
      if (found == sandboxes_.end()) co_return ending_.contains(id);
      sandbox = found->second;
      sandboxes_.erase(found);
      ending_[id] = true;
    }
    sandbox->end();
    if (during_kill) co_await during_kill();
    const std::lock_guard lock(mutex_);
    ending_.erase(id);
    co_return true;
  }

  Task<Result<void>> set_end(SandboxId id, WallTime end_at) override {
    if (set_end_error) co_return fail(*set_end_error);
    const auto sandbox = find_fake(id);
    if (sandbox == nullptr) co_return fail(Code::kNotFound, "no such sandbox");
    sandbox->set_end(end_at);
    co_return Result<void>{};
  }

  Task<Result<WallTime>> extend_end(SandboxId id, WallTime end_at) override {
    if (set_end_error) co_return fail(*set_end_error);
    const auto sandbox = find_fake(id);
    if (sandbox == nullptr) co_return fail(Code::kNotFound, "no such sandbox");
    if (end_at > sandbox->end_at()) sandbox->set_end(end_at);
    co_return sandbox->end_at();
  }

  Task<Result<std::optional<Log>>> read_log(SandboxId id, TeamId team) override {
    if (read_log_error) co_return fail(*read_log_error);
    const std::lock_guard lock(mutex_);
    const auto found = logs_.find(id);
    if (found == logs_.end() || found->second.first != team) co_return std::optional<Log>();
    co_return found->second.second;
  }

 private:
  std::shared_ptr<FakeSandbox> find_fake(const SandboxId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = sandboxes_.find(id);
    return found == sandboxes_.end() ? nullptr : found->second;
  }

  const Clock& clock_;
  mutable std::mutex mutex_;
  std::map<SandboxId, std::shared_ptr<FakeSandbox>> sandboxes_;
  std::map<SandboxId, bool> ending_;
  std::map<SandboxId, std::pair<TeamId, Log>> logs_;
  std::optional<CreateRequest> last_request_;
};

}  // namespace alcove::node::testing

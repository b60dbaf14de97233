// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cerrno>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/listener.h"
#include "node/node.h"

namespace alcove::gateway {

// A sandbox whose ports are ports of this machine's loopback. Thread-safe.
class FakeSandbox final : public node::LiveSandbox {
 public:
  explicit FakeSandbox(store::Sandbox record) : record_(std::move(record)) {}

  // From now on the sandbox's `port` leads to `real_port`.
  void open_port(uint16_t port, uint16_t real_port,
                 sandbox::Machine::Family family = sandbox::Machine::Family::kV4) {
    const std::lock_guard lock(mutex_);
    ports_[{port, family}] = real_port;
  }

  // As Node::kill: first not running, then the callbacks.
  void kill() {
    std::map<uint64_t, std::function<void()>> told;
    {
      const std::lock_guard lock(mutex_);
      running_ = false;
      told.swap(callbacks_);
    }
    for (const auto& [registration, callback] : told) callback();
  }
  // Not running, but nobody is told yet.
  void mark_dead() {
    const std::lock_guard lock(mutex_);
    running_ = false;
  }

  // No socket can be made any more, or again (0).
  void fail_connects(int error_number) {
    const std::lock_guard lock(mutex_);
    connect_error_ = error_number;
  }

  int connects() const {
    const std::lock_guard lock(mutex_);
    return connects_;
  }

  const store::Sandbox& record() const override { return record_; }
  WallTime end_at() const override { return record_.end_at; }
  bool running() const override {
    const std::lock_guard lock(mutex_);
    return running_;
  }
  std::string isolation_class() const override { return "fake"; }

  Result<UniqueFd> connect(uint16_t port, sandbox::Machine::Family family) override {
    uint16_t real_port = 0;
    {
      const std::lock_guard lock(mutex_);
      ++connects_;
      if (connect_error_ != 0) return fail_errno(connect_error_, "connect");
      const auto found = ports_.find({port, family});
      if (found == ports_.end()) return fail_errno(ECONNREFUSED, "connect");
      real_port = found->second;
    }
    return net::start_connect(family == sandbox::Machine::Family::kV4 ? "127.0.0.1" : "::1",
                              real_port);
  }

  std::vector<node::Measurement> measurements(WallTime, WallTime) const override { return {}; }
  std::optional<node::Measurement> last_measurement() const override { return {}; }

  uint64_t on_end(std::function<void()> callback) override {
    {
      const std::lock_guard lock(mutex_);
      if (running_) {
        callbacks_[++registrations_] = std::move(callback);
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

 private:
  const store::Sandbox record_;
  mutable std::mutex mutex_;
  std::map<std::pair<uint16_t, sandbox::Machine::Family>, uint16_t> ports_;
  std::map<uint64_t, std::function<void()>> callbacks_;
  uint64_t registrations_ = 0;
  int connects_ = 0;
  int connect_error_ = 0;
  bool running_ = true;
};

// A node that only finds. Sandboxes are added before the loops run.
class FakeNode final : public node::Node {
 public:
  void add(const std::shared_ptr<FakeSandbox>& sandbox) {
    sandboxes_[sandbox->record().id] = sandbox;
  }

  node::LiveSandboxPtr find(const SandboxId& id) const override {
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end() || !found->second->running()) return nullptr;
    return found->second;
  }
  std::vector<node::LiveSandboxPtr> list() const override {
    std::vector<node::LiveSandboxPtr> all;
    for (const auto& [id, sandbox] : sandboxes_) all.push_back(sandbox);
    return all;
  }
  // What find_unclear() finds.
  std::set<SandboxId> unclear;
  std::optional<TeamId> find_unclear(const SandboxId& id) const override {
    return unclear.contains(id) ? std::optional(TeamId("team")) : std::nullopt;
  }
  Task<Result<node::LiveSandboxPtr>> create(node::CreateRequest) override {
    co_return fail(Code::kUnimplemented, "a fake node creates nothing");
  }
  Task<Result<bool>> kill(SandboxId) override {
    co_return fail(Code::kUnimplemented, "use FakeSandbox::kill");
  }
  Task<Result<void>> set_end(SandboxId, WallTime) override {
    co_return fail(Code::kUnimplemented, "a fake sandbox does not expire");
  }
  Task<Result<WallTime>> extend_end(SandboxId, WallTime) override {
    co_return fail(Code::kUnimplemented, "a fake sandbox does not expire");
  }
  Task<Result<std::optional<node::Log>>> read_log(SandboxId, TeamId) override {
    co_return fail(Code::kUnimplemented, "a fake sandbox keeps no log");
  }

 private:
  std::map<SandboxId, std::shared_ptr<FakeSandbox>> sandboxes_;
};

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/eventfd.h>

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "net/listener.h"
#include "sandbox/driver.h"

namespace alcove::node::testing {

// Machines without processes: their agent is whatever listens on a loopback port.
class FakeDriver final : public sandbox::Driver {
 public:
  struct State {
    std::mutex mutex;
    std::set<std::string> alive;
    std::set<std::string> destroyed;
    std::map<std::string, int> exit_fds;
    std::map<std::string, network::EgressPolicy> egress;
    uint16_t agent_port = 0;
    // How many calls of destroy() fail.
    int failing_destroys = 0;
    // Machines do not end by kill() alone.
    bool hangs = false;
    // Calls of destroy() that would have had to wait for the end.
    int early_destroys = 0;
    // What every machine says.
    Result<sandbox::Usage> usage = sandbox::Usage{};
  };

  class FakeMachine final : public sandbox::Machine {
   public:
    FakeMachine(std::shared_ptr<State> state, SandboxId id)
        : state_(std::move(state)), id_(std::move(id)), exit_(eventfd(0, EFD_CLOEXEC)) {
      const std::lock_guard lock(state_->mutex);
      state_->alive.insert(id_.str());
      state_->exit_fds[id_.str()] = exit_.get();
    }
    std::string record() const override { return "fake " + id_.str(); }
    Result<UniqueFd> connect(uint16_t, Family) override {
      return net::start_connect("127.0.0.1", state_->agent_port);
    }
    int exit_fd() const override { return exit_.get(); }
    Result<sandbox::Usage> usage() override {
      const std::lock_guard lock(state_->mutex);
      return state_->usage;
    }
    void kill() override {
      const std::lock_guard lock(state_->mutex);
      if (!state_->hangs) end();
    }
    void free_stuck() override {
      const std::lock_guard lock(state_->mutex);
      end();
    }
    Result<void> destroy() override {
      const std::lock_guard lock(state_->mutex);
      if (state_->alive.contains(id_.str())) ++state_->early_destroys;
      if (state_->failing_destroys > 0) {
        --state_->failing_destroys;
        return fail(Code::kDeadlineExceeded, "it does not end");
      }
      state_->destroyed.insert(id_.str());
      return {};
    }

   private:
    void end() {
      state_->alive.erase(id_.str());
      eventfd_write(exit_.get(), 1);
    }

    std::shared_ptr<State> state_;
    SandboxId id_;
    UniqueFd exit_;
  };

  std::shared_ptr<State> state = std::make_shared<State>();
  bool fail_boot = false;
  // How it fails.
  Code boot_failure = Code::kInternal;
  std::atomic<bool> fail_sweep = false;
  // Which records adopt() finds alive.
  std::set<std::string> adoptable;
  // Of which it cannot tell whether they live.
  std::set<std::string> unclear;
  std::vector<SandboxId> swept_keep;
  // What sweep_again() was asked for.
  std::set<SandboxId> swept_again;
  int sweeps_done = 0;

  std::string isolation_class() const override { return "fake"; }
  Result<std::unique_ptr<sandbox::Machine>> boot(const sandbox::BootSpec& spec) override {
    if (fail_boot) return fail(boot_failure, "no machine today");
    {
      const std::lock_guard lock(state->mutex);
      state->egress[spec.id.str()] = spec.egress;
    }
    return std::make_unique<FakeMachine>(state, spec.id);
  }
  Result<std::unique_ptr<sandbox::Machine>> adopt(const SandboxId& id,
                                                  const std::string& record) override {
    {
      const std::lock_guard lock(state->mutex);
      if (unclear.contains(record)) return fail(Code::kResourceExhausted, "too many open files");
    }
    if (!adoptable.contains(record)) return fail(Code::kNotFound, "gone");
    return std::make_unique<FakeMachine>(state, id);
  }
  Result<void> sweep(const std::vector<SandboxId>& keep) override {
    swept_keep = keep;
    if (fail_sweep) return fail(Code::kDeadlineExceeded, "a process does not end");
    return {};
  }
  Result<void> sweep_again(const std::vector<SandboxId>& gone) override {
    const std::lock_guard lock(state->mutex);
    swept_again.insert(gone.begin(), gone.end());
    if (fail_sweep) return fail(Code::kDeadlineExceeded, "a process does not end");
    ++sweeps_done;
    return {};
  }
  void warm(const std::string&) override {}
};

}  // namespace alcove::node::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "base/unique_fd.h"
#include "jail/jail_record.h"
#include "jail/jail_state.h"
#include "sandbox/driver.h"

namespace alcove::jail {

// A sandbox that runs. Holds two descriptors: its pid 1 and its network namespace.
class JailMachine final : public sandbox::Machine {
 public:
  JailMachine(std::shared_ptr<JailState> state, SandboxId id, JailRecord record, UniqueFd pidfd,
              std::shared_ptr<const UniqueFd> netns)
      : state_(std::move(state)),
        id_(std::move(id)),
        record_(std::move(record)),
        pidfd_(std::move(pidfd)),
        netns_(std::move(netns)) {}

  std::string record() const override { return to_json(record_); }
  Result<UniqueFd> connect(uint16_t port, Family family) override;
  int exit_fd() const override { return pidfd_.get(); }
  Result<sandbox::Usage> usage() override;
  void kill() override;
  void free_stuck() override;
  Result<void> destroy() override;

 private:
  const std::shared_ptr<JailState> state_;
  const SandboxId id_;
  const JailRecord record_;
  const UniqueFd pidfd_;
  const std::shared_ptr<const UniqueFd> netns_;
  std::mutex mutex_;
  bool destroyed_ = false;
};

}  // namespace alcove::jail

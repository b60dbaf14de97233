// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <mutex>

#include "sandbox/driver.h"

namespace alcove::templates {

// A driver without isolation for tests of the engine: runs the agent as an ordinary process whose
// working directory is the upper directory, so that a step's relative paths land in the layer as
// they do in a jail, where it is the root.
class HostDriver final : public sandbox::Driver {
 public:
  std::string isolation_class() const override { return "none"; }
  Result<std::unique_ptr<sandbox::Machine>> boot(const sandbox::BootSpec& spec) override;
  Result<std::unique_ptr<sandbox::Machine>> adopt(const SandboxId& id,
                                                  const std::string& record) override;
  Result<void> sweep(const std::vector<SandboxId>& keep) override;
  Result<void> sweep_again(const std::vector<SandboxId>& gone) override;
  void warm(const std::string& pool_key) override;

  // What boot() was asked for, oldest first.
  std::vector<sandbox::BootSpec> boots() const;

 private:
  mutable std::mutex mutex_;
  std::vector<sandbox::BootSpec> boots_;
};

}  // namespace alcove::templates

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "relay/relay_client.h"
#include "sandbox/driver.h"

namespace alcove::jail {

// Runs sandboxes as namespaces and cgroups of this machine's kernel. Owns one launcher process
// (`alcove-jail`), which starts the sandboxes and is restarted when it dies; the sandboxes outlive
// both. Thread-safe. Needs root.
class JailDriver final : public sandbox::Driver {
 public:
  struct Options {
    // The program `alcove-jail`.
    std::string launcher_path;
    // Layers, upper directories and agents lie below this directory or one of `extra_dirs`; the
    // launcher sees nothing else of the host. File systems that are mounted below them must be
    // mounted before create(). No symbolic link on a path may lead out of its directory.
    std::string data_dir;
    std::vector<std::string> extra_dirs;
    // The directory in each cgroup hierarchy that holds this driver's sandboxes. It must not be
    // shared with another driver: sweep() removes what it does not know there. Empty: a name
    // derived from the data directory.
    std::string cgroup_prefix;
    // Prepared user+network namespace pairs per pool key.
    uint32_t pairs_per_key = 8;
    // Decides what leaves sandboxes; outlives the driver's machines. None: nothing leaves.
    std::shared_ptr<relay::RelayClient> relay;
    // How long a boot may take before it is given up.
    std::chrono::milliseconds boot_timeout = std::chrono::seconds(20);
  };

  static Result<std::unique_ptr<JailDriver>> create(Options options);
  // Stops the launcher once the last machine object is gone too. Sandboxes stay.
  ~JailDriver() override;

  std::string isolation_class() const override { return "jail"; }
  Result<std::unique_ptr<sandbox::Machine>> boot(const sandbox::BootSpec& spec) override;
  Result<std::unique_ptr<sandbox::Machine>> adopt(const SandboxId& id,
                                                  const std::string& record) override;
  Result<void> sweep(const std::vector<SandboxId>& keep) override;
  Result<void> sweep_again(const std::vector<SandboxId>& gone) override;
  void warm(const std::string& pool_key) override;

 private:
  struct Impl;
  explicit JailDriver(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace alcove::jail

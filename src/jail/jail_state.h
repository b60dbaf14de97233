// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <memory>

#include "base/unique_fd.h"
#include "jail/jail_driver.h"
#include "jail/launcher_client.h"
#include "network/id_blocks.h"
#include "network/namespace_pair_pool.h"
#include "sys/cgroup.h"

namespace alcove::jail {

// What a driver and its machines share; lives as long as the last of them.
struct JailState {
  JailState(JailDriver::Options given, sys::CgroupTree tree, UniqueFd netns)
      : options(std::move(given)),
        cgroups(std::move(tree)),
        home_netns(std::move(netns)),
        launcher(options.launcher_path, launcher_dirs(options), options.boot_timeout),
        pairs(launcher, blocks, {.pairs_per_key = options.pairs_per_key}) {}

  // The prefix directories stay if a sandbox lives in them.
  ~JailState() { cgroups.remove_prefix(); }
  JailState(const JailState&) = delete;
  JailState& operator=(const JailState&) = delete;

  static std::vector<std::string> launcher_dirs(const JailDriver::Options& options) {
    std::vector<std::string> dirs = {options.data_dir};
    dirs.insert(dirs.end(), options.extra_dirs.begin(), options.extra_dirs.end());
    return dirs;
  }

  const JailDriver::Options options;
  const sys::CgroupTree cgroups;
  const UniqueFd home_netns;
  network::HostIdBlocks blocks;
  LauncherClient launcher;
  network::NamespacePairPool pairs;
  std::atomic<uint32_t> next_cpu = 0;
};

}  // namespace alcove::jail

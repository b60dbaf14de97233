// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "jail/launch_protocol.h"
#include "jail/lean_root.h"
#include "jail/shared_files.h"

namespace alcove::jail {

// The program `alcove-jail`: starts sandboxes for a driver at the other end of a socket, until that
// closes. Single-threaded; keeps nothing but caches between requests, so that it can be replaced at
// any time.
class Launcher {
 public:
  explicit Launcher(int socket) : socket_(socket) {}

  // Prepares this process: own mount namespace, system call filter.
  Result<void> prepare(const std::string& data_dir, const std::vector<std::string>& extra_dirs);
  // Serves requests until the driver is gone.
  void serve();

 private:
  void handle(const TemplateNamespaceRequest& request, std::vector<UniqueFd> fds);
  void handle(const PairsRequest& request, std::vector<UniqueFd> fds);
  void handle(BootRequest request, std::vector<UniqueFd> fds);

  int socket_;
  SharedFiles shared_files_;
  CgroupMounts cgroup_mounts_;
};

}  // namespace alcove::jail

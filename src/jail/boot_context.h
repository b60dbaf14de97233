// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cerrno>
#include <span>
#include <vector>

#include "base/unique_fd.h"
#include "jail/launch_protocol.h"

namespace alcove::jail {

// Everything the two processes that build a sandbox share. All memory is allocated by the launcher
// before it forks them.
struct BootContext {
  BootRequest request;
  std::string overlay_options;
  std::string dev_options;
  std::string shm_options;
  std::string run_options;
  std::string look_dir;   // the prepared /proc files of a machine of this size
  std::string stat_text;  // and the one that tells the boot time
  // Where the sandbox's own cgroups lie in the launcher's root and are shown in the sandbox.
  std::vector<std::pair<std::string, std::string>> cgroup_binds;
  std::vector<char*> agent_argv;  // points into `request`, ends with nullptr

  UniqueFd status;
  UniqueFd user_ns;
  UniqueFd net_ns;
  UniqueFd cgroup2;
  std::vector<UniqueFd> v1_tasks;

  UniqueFd time_offsets;
  UniqueFd listener;
  // What the step that runs works on, for its error message.
  const char* detail = "";
};

// One thing that is done to build a sandbox. Returns 0 or an errno.
struct Step {
  const char* name;
  int (*run)(BootContext&);
};

// Runs the steps in order; the first failure is reported on the status socket and ends the process.
void run_steps(std::span<const Step> steps, BootContext& context);

// The first process: as the host's root, in a mount namespace of its own that the second inherits.
// Does not return.
[[noreturn]] void run_host_side(BootContext& context);
// The second: root of the sandbox's user namespace only, pid 1 of its pid namespace. Does not
// return.
[[noreturn]] void run_guest_side(BootContext& context);

// errno of a call that reports failure by a negative number, else 0.
inline int errno_of(long result) { return result < 0 ? errno : 0; }

}  // namespace alcove::jail

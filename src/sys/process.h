// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <chrono>
#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

struct CloneOptions {
  uint64_t flags = 0;  // CLONE_NEW*
  int cgroup_fd = -1;  // a cgroup2 directory to be born in
  int* pidfd = nullptr;
};

// fork(2) with clone3(2)'s options; only for single-threaded programs. Returns 0 in the child, -1
// with errno set on failure.
pid_t clone_process(const CloneOptions& options);

Result<UniqueFd> open_pidfd(pid_t pid);
// Harmless if the process is gone.
void kill_by_pidfd(int pidfd);
// True if the process has ended before the deadline.
bool wait_by_pidfd(int pidfd, std::chrono::steady_clock::time_point deadline);

// Field 22 of /proc/<pid>/stat: with the pid it names a process for good (until reboot).
Result<uint64_t> process_start_time(pid_t pid);

}  // namespace alcove::sys

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace alcove::interpreter {

struct ProcessEntry {
  pid_t pid = 0;
  pid_t parent = 0;
  pid_t session = 0;
  // Only its exit status is left.
  bool ended = false;
};

// The processes of the sandbox, by /proc.
std::vector<ProcessEntry> list_processes();

// The arguments of a process, each followed by a NUL byte; empty if it is gone.
std::string process_arguments(pid_t pid);

}  // namespace alcove::interpreter

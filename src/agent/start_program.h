// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace alcove::agent {

// A program of ours that is started as it is, without a user's settings.
struct ProgramStart {
  // argv[0] is a path.
  std::vector<std::string> argv;
  // "NAME=value", all of it.
  std::vector<std::string> environment;
  std::string directory = "/";
  // The i-th becomes descriptor i of the program, -1 is /dev/null; nothing else is open in it.
  // None of them is 0, 1 or 2.
  std::vector<int> fds;
};

// Starts it in a session of its own, with no signal blocked or ignored. Whoever calls waits for
// the process (ChildReaper).
Result<pid_t> start_program(const ProgramStart& start);

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace alcove::sys {

// A program of ours that a threaded server starts: it gets `socket` as its descriptor 3 and nothing
// as standard input, with default signals and none blocked.
struct HelperProgram {
  std::string path;
  std::vector<std::string> arguments;
  int socket = -1;
  enum class Output { kInherited, kNone };
  Output output = Output::kInherited;
};

// In a session of its own: Ctrl-C in the server's terminal is not for it.
Result<pid_t> start_helper(const HelperProgram& helper);

}  // namespace alcove::sys

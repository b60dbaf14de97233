// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "agent/users.h"
#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::agent {

struct TerminalSize {
  uint16_t cols = 0;
  uint16_t rows = 0;
  bool operator==(const TerminalSize&) const = default;
};

// Everything about a process to start, already resolved.
struct SpawnSpec {
  std::string command;
  std::vector<std::string> arguments;
  // "NAME=value". A command without a slash is looked for in the PATH among these.
  std::vector<std::string> environment;
  User user;
  std::string directory;
  enum class Input { kPipe, kNull };
  Input input = Input::kNull;
  // A terminal instead of three pipes; `input` does not matter then.
  std::optional<TerminalSize> terminal;
};

// A started process and our ends of its pipes. They still block: net::FdStream changes that. With a
// terminal only `terminal` is valid.
struct Spawned {
  pid_t pid = -1;
  UniqueFd input;
  UniqueFd output;
  UniqueFd error_output;
  UniqueFd terminal;
};

// Where the command is looked for, in this order.
std::vector<std::string> candidate_paths(const SpawnSpec& spec);

// Starts a process. A command that does not exist is no failure: the process says so on its
// standard error and exits with 127 (126 if it is not executable). kInvalidArgument for a
// directory that cannot be entered by the user. Blocks until the new process has become the
// command, so a file system that hangs holds it up: to be called on a pool thread, except for what
// root_mount.h says. `pid` is set before the process runs.
Result<Spawned> spawn(const SpawnSpec& spec, std::atomic<pid_t>& pid);
Result<Spawned> spawn(const SpawnSpec& spec);

}  // namespace alcove::agent

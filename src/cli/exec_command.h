// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client_settings.h"

namespace alcove::cli {

struct ExecOptions {
  std::string sandbox_id;
  // The program and its arguments; no shell takes part. Empty: a login shell.
  std::vector<std::string> command;
  // Empty: the template's own.
  std::string user;
  std::string directory;
  std::map<std::string, std::string> env_vars;
  // Standard input goes to the command even if it is a terminal.
  bool interactive = false;
  // It gets a terminal of the size of ours, and ours goes to it; standard input must be one.
  bool terminal = false;
  // The command is killed after that time.
  std::optional<std::chrono::seconds> timeout;
};

// Runs a command in a sandbox: output as it comes, input unless it is a terminal. The result is the
// command's exit code, 128 + number for a signal, 124 if the timeout killed it. The first
// interruption (Ctrl-C) sends SIGTERM to the command, the second SIGKILL, a third gives up. With a
// terminal, Ctrl-C is a key like others, and a signal that ends us kills the command.
Result<int> exec_in_sandbox(const ClientFlags& flags, const ExecOptions& options);

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "cli/exec_command.h"
#include "cli/local_terminal.h"

namespace alcove::cli {

// The messages of process.Process as a caller writes and reads them (protocol/envd.md 2A.1).

enum class Input { kNone, kPipe, kTerminal };
// `size` is for a terminal only. TERM and the locale are then as the official clients set them,
// unless the options have others.
std::string start_message(const ExecOptions& options, Input input, TerminalSize size = {});
std::string input_message(uint32_t pid, Input input, std::string_view data);
std::string resize_message(uint32_t pid, TerminalSize size);
std::string selector_message(uint32_t pid);
// `name` is "SIGNAL_SIGTERM" or "SIGNAL_SIGKILL".
std::string signal_message(uint32_t pid, std::string_view name);

struct Started {
  uint32_t pid = 0;
};
struct Output {
  // A terminal has one stream for both.
  enum class Stream { kOutput, kError } stream = Stream::kOutput;
  std::string data;
};
struct Ended {
  // What a shell would say: the exit code, or 128 + the signal's number.
  int exit_code = 0;
  bool by_signal = false;
  // "exit status 1", "signal: killed"
  std::string status;
};
// Sent while nothing happens; also anything that a newer agent may send.
struct Nothing {};
using ProcessEvent = std::variant<Nothing, Started, Output, Ended>;

Result<ProcessEvent> parse_event(std::string_view message);

}  // namespace alcove::cli

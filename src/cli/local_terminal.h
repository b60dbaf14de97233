// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"

namespace alcove::cli {

struct TerminalSize {
  uint32_t columns = 80;
  uint32_t rows = 24;

  bool operator==(const TerminalSize&) const = default;
};

// The terminal on standard input, while a program in a sandbox has it: each key goes to that
// program as it is, without echo, line editing or signals here. Its settings come back with the
// destructor, and also when this process crashes. At most one exists.
class LocalTerminal {
 public:
  LocalTerminal() = default;
  ~LocalTerminal() { give_back(); }
  LocalTerminal(const LocalTerminal&) = delete;
  LocalTerminal& operator=(const LocalTerminal&) = delete;

  // False in a script, where standard input is a pipe or a file.
  static bool is_there();
  // 80 x 24 if it does not know its size.
  static TerminalSize size();

  // Also after give_back(). In the background it waits until the terminal is ours again.
  Result<void> take();
  // Nothing happens if it was not taken, or if we are in the background: it is others' then.
  void give_back();
  // For a program that did not end by itself: gives back, switches off what it may have switched on
  // (colours, mouse reports, the second screen), and begins a new line.
  void break_off();
  // As the key Ctrl-Z does it for other programs: gives back and stops this process.
  void stop_process();
};

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::image {

struct Program {
  // argv[0] is looked up in PATH.
  std::vector<std::string> argv;
  // Stays open in the program under the same number: a lock that it shares. -1 for none.
  int inherited_fd = -1;
  // Each line of stdout and stderr, without its end.
  std::function<void(std::string_view line)> on_line = {};
  std::chrono::seconds timeout = std::chrono::minutes(5);
  // Looked at several times a second: when it is set, the program is killed (kCanceled).
  const std::atomic<bool>* canceled = nullptr;
};

// Runs a helper program of the host to its end and collects the end of its output. An exit status
// other than 0 is an error that shows it; kNotFound (ENOENT) if the program is not installed.
// After the timeout, or when it is canceled, its process group is killed.
Result<void> run_program(const Program& program);

}  // namespace alcove::image

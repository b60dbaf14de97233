// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/blocking_pool.h"
#include "net/task.h"

namespace alcove::cli {

// Writes all of it; blocks, also if somebody made the descriptor non-blocking.
Result<void> write_all(int fd, std::string_view data);

// Standard input and output belong to other programs too (the shell, the rest of a pipeline), so
// they stay blocking and are used on threads of their own.

class StandardInput {
 public:
  StandardInput();
  // Ends a read under way.
  ~StandardInput();
  StandardInput(const StandardInput&) = delete;
  StandardInput& operator=(const StandardInput&) = delete;

  // What is there, as soon as anything is; empty at the end.
  Task<Result<std::string>> read();

 private:
  UniqueFd stop_;
  net::BlockingPool pool_;
};

class StandardOutput {
 public:
  enum class Target { kOutput, kError };

  StandardOutput();
  // All of it, before it returns.
  Task<Result<void>> write(Target target, std::string data);

 private:
  net::BlockingPool pool_;
};

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::interpreter {

struct RunnerFile {
  // As "python/main.py".
  std::string_view path;
  std::string_view content;
};

// The language runners, which are part of the program (made by embed_runners.py).
std::span<const RunnerFile> runner_files();

// Writes them below `folder`, which is made.
Result<void> write_runner_files(const std::string& folder);

}  // namespace alcove::interpreter

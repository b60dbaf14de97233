// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>

#include "base/result.h"

namespace CLI {
class App;
}

namespace alcove {

// What the parsed command line asks for; returns the program's exit code.
using Action = std::function<Result<int>()>;

// Adds `sandbox ...` and `template ...`. Parsing one of them sets `action`, which outlives the app.
void add_sandbox_commands(CLI::App& app, Action& action);

}  // namespace alcove

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "cli/completion.h"

namespace CLI {
class App;
}

namespace alcove {

// The commands and options of the parser, so that completion offers exactly what it accepts.
cli::CommandTree command_tree(const CLI::App& app);

}  // namespace alcove

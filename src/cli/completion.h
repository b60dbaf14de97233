// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::cli {

// What completion has to know of a command and those below it.
struct CommandTree {
  struct Option {
    std::string name;  // "--team" or "-u"
    std::string help;
  };
  std::string name;
  std::string help;
  std::vector<Option> options;
  std::vector<CommandTree> commands;
  // Its arguments are ids of sandboxes.
  bool takes_sandboxes = false;
};

// The script that completes `alcove` in "bash", "zsh" or "fish".
Result<std::string> completion_script(std::string_view shell, const CommandTree& root);

}  // namespace alcove::cli

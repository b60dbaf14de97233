// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::interpreter {

// "" is Python, "js" JavaScript, "ts" TypeScript; else in lower case and without blanks around it.
std::string normalize_language(std::string_view asked);

// The command that starts the runner of a language, with its program found in `path_variable`.
// Nothing for a language without a runner of ours; an error if its program is not installed.
Result<std::optional<std::vector<std::string>>> runner_command(std::string_view language,
                                                               const std::string& runner_folder,
                                                               std::string_view path_variable);

// The file of that name in the first folder of a PATH that has it and where it can be executed.
std::optional<std::string> find_program(std::string_view name, std::string_view path_variable);

}  // namespace alcove::interpreter

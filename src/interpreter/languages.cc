// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/languages.h"

#include <unistd.h>

#include <array>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

struct Runner {
  std::string_view language;
  std::string_view program;
  // Below the folder of the runners; the only argument.
  std::string_view file;
};

constexpr std::array<Runner, 3> kRunners = {{{"python", "python3", "python/main.py"},
                                             {"javascript", "node", "node/main.mjs"},
                                             {"typescript", "node", "node/main.mjs"}}};

}  // namespace

std::string normalize_language(std::string_view asked) {
  std::string language = to_lower(trim(asked));
  if (language.empty()) return "python";
  if (language == "js") return "javascript";
  if (language == "ts") return "typescript";
  return language;
}

std::optional<std::string> find_program(std::string_view name, std::string_view path_variable) {
  for (const std::string_view folder : split(path_variable, ':')) {
    std::string path = cat(folder, "/", name);
    if (!folder.empty() && ::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Result<std::optional<std::vector<std::string>>> runner_command(std::string_view language,
                                                               const std::string& runner_folder,
                                                               std::string_view path_variable) {
  using Command = std::optional<std::vector<std::string>>;
  for (const Runner& runner : kRunners) {
    if (runner.language != language) continue;
    auto program = find_program(runner.program, path_variable);
    if (!program) return fail(Code::kNotFound, cat(runner.program, " is not installed"));
    return Command({*std::move(program), cat(runner_folder, "/", runner.file)});
  }
  return Command();
}

}  // namespace alcove::interpreter

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
  // With blanks between them.
  std::string_view flags;
  // Below the folder of the runners.
  std::string_view file;
};

// As each runner's COMMAND says.
constexpr std::array<Runner, 4> kRunners = {{{"python", "python3", "", "python/main.py"},
                                             {"javascript", "node", "", "node/main.mjs"},
                                             {"typescript", "node", "", "node/main.mjs"},
                                             {"bash", "python3", "-I -S", "bash/main.py"}}};

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
    std::vector<std::string> command = {*std::move(program)};
    if (!runner.flags.empty()) {
      for (const std::string_view flag : split(runner.flags, ' ')) command.emplace_back(flag);
    }
    command.push_back(cat(runner_folder, "/", runner.file));
    return Command(std::move(command));
  }
  return Command();
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/languages.h"

#include <unistd.h>

#include <array>

#include "base/strings.h"
#include "interpreter/runner_files.h"

namespace alcove::interpreter {
namespace {

struct Runner {
  std::string_view language;
  // Of the runners' folders.
  std::string_view folder;
  // What its COMMAND starts in the end.
  std::string_view program;
};

constexpr std::array<Runner, 5> kRunners = {{{"python", "python", "python3"},
                                             {"javascript", "node", "node"},
                                             {"typescript", "node", "node"},
                                             {"java", "java", "java"},
                                             {"bash", "bash", "bash"}}};

std::string_view command_line(std::string_view folder) {
  const std::string path = cat(folder, "/COMMAND");
  for (const RunnerFile& file : runner_files()) {
    if (file.path == path) return trim(file.content);
  }
  return {};
}

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
    if (!find_program(runner.program, path_variable)) {
      return fail(Code::kNotFound, cat(runner.program, " is not installed"));
    }
    std::vector<std::string> command;
    for (std::string_view word : split(command_line(runner.folder), ' ')) {
      if (word == "<language>") word = runner.language;
      constexpr std::string_view kFolder = "<folder>";
      if (!word.starts_with(kFolder)) {
        command.emplace_back(word);
        continue;
      }
      word.remove_prefix(kFolder.size());
      command.push_back(cat(runner_folder, "/", runner.folder, word));
    }
    auto program = find_program(command.front(), path_variable);
    if (!program) return fail(Code::kNotFound, cat(command.front(), " is not installed"));
    command.front() = *std::move(program);
    return Command(std::move(command));
  }
  return Command();
}

}  // namespace alcove::interpreter

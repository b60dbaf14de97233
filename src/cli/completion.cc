// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/completion.h"

#include <functional>

#include "base/strings.h"

namespace alcove::cli {
namespace {

// Where the shells find the ids to offer.
constexpr std::string_view kListSandboxes = "alcove sandbox ls --quiet 2>/dev/null";

using Visit = std::function<void(const std::string& place, const CommandTree& command)>;

// Every command with the words that lead to it: "", " key", " key create".
void walk(const CommandTree& command, const std::string& place, const Visit& visit) {
  visit(place, command);
  for (const CommandTree& child : command.commands) {
    walk(child, cat(place, " ", child.name), visit);
  }
}

// Help texts stand in single quotes.
std::string quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// All places below the root, in quotes.
std::vector<std::string> known_places(const CommandTree& root) {
  std::vector<std::string> places;
  walk(root, "", [&](const std::string& place, const CommandTree&) {
    if (!place.empty()) places.push_back(cat('"', place, '"'));
  });
  return places;
}

// Scripts with marks for what depends on the commands.
constexpr std::string_view kBash =
    R"sh(# bash completion of alcove: source <(alcove completion bash)
_alcove() {
  local current="${COMP_WORDS[COMP_CWORD]}" place="" words="" ids="" i
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$place ${COMP_WORDS[i]}" in
      @places@) place="$place ${COMP_WORDS[i]}" ;;
    esac
  done
  case "$place" in
@cases@  esac
  if [[ -n $ids && $current != -* ]]; then
    words="$(@list@)"
  fi
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -o default -F _alcove alcove
)sh";

constexpr std::string_view kZsh = R"sh(#compdef alcove
# zsh completion of alcove: alcove completion zsh > "${fpath[1]}/_alcove"
_alcove() {
  local place="" word
  local -a commands options
  for word in "${(@)words[2,CURRENT-1]}"; do
    case "$place $word" in
      @places@) place="$place $word" ;;
    esac
  done
  case "$place" in
@cases@  esac
  (( $#commands )) && _describe 'command' commands
  (( $#options )) && _describe 'option' options
  _files
}
if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
  _alcove "$@"
else
  compdef _alcove alcove
fi
)sh";

constexpr std::string_view kFish = R"sh(# fish completion of alcove: alcove completion fish | source
function __alcove_at
    set -l place ""
    for word in (commandline -opc)[2..]
        switch "$place $word"
            case @places@
                set place "$place $word"
        end
    end
    test "$place" = "$argv[1]"
end
@cases@)sh";

// Each mark stands once in a script, in this order; no text that is filled in holds one.
std::string filled(std::string_view script, std::string_view places, std::string_view cases) {
  std::string out(script);
  const std::pair<std::string_view, std::string_view> marks[] = {
      {"@places@", places}, {"@cases@", cases}, {"@list@", kListSandboxes}};
  for (const auto& [mark, text] : marks) {
    const size_t at = out.find(mark);
    if (at != std::string::npos) out.replace(at, mark.size(), text);
  }
  return out;
}

std::string bash_script(const CommandTree& root) {
  std::string cases;
  walk(root, "", [&](const std::string& place, const CommandTree& command) {
    std::vector<std::string> words;
    for (const CommandTree& child : command.commands) words.push_back(child.name);
    for (const auto& option : command.options) words.push_back(option.name);
    cases += cat("    \"", place, "\") words=\"", join(words, " "), "\"",
                 command.takes_sandboxes ? " ids=yes" : "", " ;;\n");
  });
  return filled(kBash, join(known_places(root), "|"), cases);
}

std::string zsh_script(const CommandTree& root) {
  std::string cases;
  walk(root, "", [&](const std::string& place, const CommandTree& command) {
    cases += cat("    \"", place, "\")\n");
    for (const CommandTree& child : command.commands) {
      cases += cat("      commands+=(", quoted(cat(child.name, ":", child.help)), ")\n");
    }
    for (const auto& option : command.options) {
      cases += cat("      options+=(", quoted(cat(option.name, ":", option.help)), ")\n");
    }
    if (command.takes_sandboxes) {
      cases += cat("      commands+=(${(f)\"$(", kListSandboxes, ")\"})\n");
    }
    cases += "      ;;\n";
  });
  return filled(kZsh, join(known_places(root), "|"), cases);
}

std::string fish_script(const CommandTree& root) {
  std::string lines;
  walk(root, "", [&](const std::string& place, const CommandTree& command) {
    const std::string at = cat("complete -c alcove -n '__alcove_at \"", place, "\"' ");
    for (const CommandTree& child : command.commands) {
      lines += cat(at, "-f -a ", child.name, " -d ", quoted(child.help), "\n");
    }
    for (const auto& option : command.options) {
      const bool is_long = option.name.starts_with("--");
      lines += cat(at, is_long ? "-l " : "-s ", option.name.substr(is_long ? 2 : 1), " -d ",
                   quoted(option.help), "\n");
    }
    if (command.takes_sandboxes) lines += cat(at, "-a '(", kListSandboxes, ")'\n");
  });
  return filled(kFish, join(known_places(root), " "), lines);
}

}  // namespace

Result<std::string> completion_script(std::string_view shell, const CommandTree& root) {
  if (shell == "bash") return bash_script(root);
  if (shell == "zsh") return zsh_script(root);
  if (shell == "fish") return fish_script(root);
  return fail(Code::kInvalidArgument,
              cat("there is no completion for ", shell, ", only for bash, zsh and fish"));
}

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/sandbox_flags.h"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "cli/copy_command.h"
#include "cli/exec_command.h"
#include "cli/sandbox_commands.h"
#include "cli/units.h"

namespace alcove {
namespace {

using cli::ClientFlags;
using cli::Format;

// What every command that talks to a server has. Shared with its action.
struct Common {
  ClientFlags server;
  bool json = false;

  Format format() const { return json ? Format::kJson : Format::kText; }
};

std::shared_ptr<Common> add_common(CLI::App* command) {
  auto common = std::make_shared<Common>();
  command
      ->add_option("--url", common->server.url, "The server's address, e.g. http://127.0.0.1:3000")
      ->group("Server");
  command->add_option("--api-key", common->server.api_key, "The API key")->group("Server");
  command
      ->add_option("--data-dir", common->server.data_dir,
                   "Take address and key from the file `env` of a server's data directory here")
      ->group("Server");
  return common;
}

void add_json(CLI::App* command, const std::shared_ptr<Common>& common, const char* help) {
  command->add_flag("--json", common->json, help);
}

// "K=V" texts as a map; CLI11 reports what has no '='.
using Pairs = std::vector<std::string>;

CLI::Option* add_pairs(CLI::App* command, const char* names, Pairs& pairs, const char* help) {
  return command->add_option(names, pairs, help)
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false)
      ->check([](const std::string& text) {
        const size_t equals = text.find('=');
        return equals == std::string::npos || equals == 0 ? "expected NAME=VALUE, not " + text
                                                          : std::string();
      });
}

std::map<std::string, std::string> to_map(const Pairs& pairs) {
  std::map<std::string, std::string> out;
  for (const std::string& pair : pairs) {
    const size_t equals = pair.find('=');
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return out;
}

// A duration that was checked when it was parsed.
CLI::Option* add_duration(CLI::App* command, const char* name, std::string& text,
                          const char* help) {
  return command->add_option(name, text, help)
      ->type_name("TIME")
      ->check([](const std::string& given) {
        const auto parsed = cli::parse_duration(given);
        return parsed ? std::string() : parsed.error().message();
      });
}

void add_create(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("create", "Create a sandbox and print its id");
  const auto common = add_common(command);
  struct Flags {
    cli::CreateOptions options;
    std::string timeout = "300";
    Pairs metadata;
    Pairs env_vars;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("template", flags->options.template_name, "What to create it from")
      ->capture_default_str();
  add_duration(command, "--timeout", flags->timeout, "How long it lives: seconds, or 5m, 2h, 1d")
      ->capture_default_str();
  add_pairs(command, "-m,--metadata", flags->metadata, "A label to find it by; may be repeated");
  add_pairs(command, "-e,--env", flags->env_vars,
            "A variable for all its processes; may be repeated");
  command->add_flag("--no-internet", flags->options.no_internet, "Without access to the internet");
  add_json(command, common, "Print the API's whole answer");
  command->footer(
      "Examples:\n"
      "  ID=$(alcove sandbox create)\n"
      "  alcove sandbox create base --timeout 2h -m job=42 -e DEBUG=1");
  command->callback([=, &action] {
    action = [=] {
      cli::CreateOptions options = flags->options;
      options.timeout = *cli::parse_duration(flags->timeout);
      options.metadata = to_map(flags->metadata);
      options.env_vars = to_map(flags->env_vars);
      options.format = common->format();
      return cli::create_sandbox(common->server, options);
    };
  });
}

void add_list(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("ls", "List sandboxes, the newest first");
  const auto common = add_common(command);
  auto options = std::make_shared<cli::ListOptions>();
  auto metadata = std::make_shared<Pairs>();
  add_pairs(command, "-m,--metadata", *metadata, "Only those with this label; may be repeated");
  command->add_option("--template", options->template_name, "Only those of this template");
  command->add_flag("-q,--quiet", options->quiet, "Ids only, one per line");
  add_json(command, common, "Print the API's objects as an array");
  command->footer(
      "Examples:\n"
      "  alcove sandbox ls -m job=42\n"
      "  alcove sandbox kill $(alcove sandbox ls -q --template base)");
  command->callback([=, &action] {
    action = [=] {
      options->metadata = to_map(*metadata);
      options->format = common->format();
      return cli::list_sandboxes(common->server, *options);
    };
  });
}

void add_info(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("info", "Show one sandbox");
  const auto common = add_common(command);
  auto id = std::make_shared<std::string>();
  command->add_option("id", *id, "The sandbox")->required();
  add_json(command, common, "Print the API's object, with the sandbox's access token");
  command->callback([=, &action] {
    action = [=] { return cli::show_sandbox_info(common->server, *id, common->format()); };
  });
}

// Who runs a program, where and with what.
void add_process_options(CLI::App* command, cli::ExecOptions& options, Pairs& env_vars) {
  command->add_option("-u,--user", options.user, "Who it runs as (default: the template's user)");
  command->add_option("-w,--workdir", options.directory,
                      "Where it runs (default: the user's home)");
  add_pairs(command, "-e,--env", env_vars, "A variable for it; may be repeated");
}

void add_exec(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("exec", "Run a command in a sandbox");
  const auto common = add_common(command);
  struct Flags {
    cli::ExecOptions options;
    std::string timeout;
    Pairs env_vars;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("id", flags->options.sandbox_id, "The sandbox")->required();
  command->add_option("command", flags->options.command, "The program and its arguments, after --")
      ->required();
  add_process_options(command, flags->options, flags->env_vars);
  command->add_flag("-i,--interactive", flags->options.interactive,
                    "Pass standard input on even if it is a terminal");
  command->add_flag("-t,--tty", flags->options.terminal,
                    "Run it in a terminal, with the keys of this one");
  add_duration(command, "--timeout", flags->timeout, "Kill it after that time: seconds, or 5m, 2h");
  command->footer(
      "Output is passed on as it comes, standard input unless it is a terminal. No shell takes "
      "part:\n"
      "use `-- bash -c '...'` for pipes and variables. Ctrl-C sends SIGTERM to the command, a "
      "second\n"
      "one SIGKILL. With -t, Ctrl-C is a key like any other.\n\n"
      "The exit code is the command's own; 128 + n if signal n ended it, 124 after --timeout, 1 if "
      "it\n"
      "could not be run (a line on standard error that begins with `alcove:` says why).\n\n"
      "Examples:\n"
      "  alcove sandbox exec $ID -- python3 --version\n"
      "  alcove sandbox exec $ID -u root -w /tmp -e N=3 -- bash -c 'seq $N | tac'\n"
      "  tar c src | alcove sandbox exec $ID -- tar x\n"
      "  alcove sandbox exec -t $ID -- top");
  command->callback([=, &action] {
    action = [=]() -> Result<int> {
      cli::ExecOptions options = flags->options;
      options.env_vars = to_map(flags->env_vars);
      if (!flags->timeout.empty()) options.timeout = *cli::parse_duration(flags->timeout);
      return cli::exec_in_sandbox(common->server, options);
    };
  });
}

void add_shell(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("shell", "Open a shell in a sandbox");
  const auto common = add_common(command);
  struct Flags {
    cli::ExecOptions options;
    Pairs env_vars;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("id", flags->options.sandbox_id, "The sandbox")->required();
  add_process_options(command, flags->options, flags->env_vars);
  command->footer(
      "A login shell (bash, or sh where there is none) in a terminal that follows the size of "
      "this\n"
      "one. All keys go to it, Ctrl-C too; `exit` ends it, and its exit code is passed on. The\n"
      "sandbox's timeout runs on meanwhile. If this program is ended, so is the shell.\n\n"
      "Examples:\n"
      "  alcove sandbox shell $ID\n"
      "  alcove sandbox shell $ID -u root -w /etc");
  command->callback([=, &action] {
    action = [=] {
      cli::ExecOptions options = flags->options;
      options.env_vars = to_map(flags->env_vars);
      options.terminal = true;
      return cli::exec_in_sandbox(common->server, options);
    };
  });
}

void add_copy(CLI::App* sandbox, Action& action) {
  CLI::App* command =
      sandbox->add_subcommand("cp", "Copy a file or a directory into or out of a sandbox");
  const auto common = add_common(command);
  struct Flags {
    std::string from;
    std::string to;
    std::string user;
  };
  auto flags = std::make_shared<Flags>();
  command->add_option("from", flags->from, "PATH here, or ID:PATH in a sandbox")->required();
  command->add_option("to", flags->to, "The other side")->required();
  command->add_option("-u,--user", flags->user,
                      "Whose home relative paths start from, and whom copies belong to");
  add_json(command, common, "Print how many files and bytes were copied");
  command->footer(
      "As `cp -r`: into the target if that is a directory, else to that name. Permissions are "
      "kept.\n"
      "Links to files are copied as files; links to directories and special files are left out.\n"
      "A local name with a colon is written ./a:b.\n\n"
      "Examples:\n"
      "  alcove sandbox cp data.csv $ID:/home/user/\n"
      "  alcove sandbox cp $ID:/home/user/results ./results");
  command->callback([=, &action] {
    action = [=]() -> Result<int> {
      cli::CopyOptions options{.from = cli::parse_copy_path(flags->from),
                               .to = cli::parse_copy_path(flags->to),
                               .user = flags->user,
                               .format = common->format()};
      if (options.from.is_remote() == options.to.is_remote()) {
        std::fputs("alcove: exactly one of the two sides is in a sandbox (ID:PATH)\n", stderr);
        return cli::kUsage;
      }
      return cli::copy_files(common->server, options);
    };
  });
}

using Watch = Result<int> (*)(const ClientFlags&, const cli::WatchOptions&);

void add_watch(CLI::App* sandbox, Action& action, const char* name, const char* help,
               uint32_t default_last, Watch watch) {
  CLI::App* command = sandbox->add_subcommand(name, help);
  const auto common = add_common(command);
  auto options = std::make_shared<cli::WatchOptions>();
  options->last = default_last;
  command->add_option("id", options->id, "The sandbox")->required();
  command->add_flag("-f,--follow", options->follow, "Go on until the sandbox has ended");
  command->add_option("-n,--last", options->last, "Of what is there, only the last so many; 0: all")
      ->capture_default_str();
  add_json(command, common, "Print one JSON object per line");
  command->callback([=, &action] {
    action = [=] {
      options->format = common->format();
      return watch(common->server, *options);
    };
  });
}

void add_kill(CLI::App* sandbox, Action& action) {
  CLI::App* command = sandbox->add_subcommand("kill", "End sandboxes and remove their files");
  const auto common = add_common(command);
  auto options = std::make_shared<cli::KillOptions>();
  auto* ids = command->add_option("id", options->ids, "The sandboxes");
  auto* all = command->add_flag("--all", options->all, "All that the API key sees");
  all->excludes(ids);
  command->footer("Prints the ids of those that it ended; 1 if one of the named does not exist.");
  command->callback([=, &action] {
    action = [=]() -> Result<int> {
      if (options->ids.empty() && !options->all) {
        std::fputs("alcove: name the sandboxes to kill, or --all\n", stderr);
        return cli::kUsage;
      }
      return cli::kill_sandboxes(common->server, *options);
    };
  });
}

}  // namespace

void add_sandbox_commands(CLI::App& app, Action& action) {
  CLI::App* sandbox = app.add_subcommand("sandbox", "Create, use and end sandboxes");
  sandbox->require_subcommand(1);
  sandbox->footer(
      "The server and the key come from --url and --api-key, else from --data-dir, else from\n"
      "E2B_API_URL and E2B_API_KEY, else from the file `env` in ALCOVE_DATA or /var/lib/alcove.\n\n"
      "Examples:\n"
      "  ID=$(alcove sandbox create --timeout 1h)\n"
      "  alcove sandbox exec $ID -- uname -a\n"
      "  alcove sandbox shell $ID\n"
      "  alcove sandbox cp ./project $ID:/home/user/\n"
      "  alcove sandbox kill $ID");
  add_create(sandbox, action);
  add_list(sandbox, action);
  add_info(sandbox, action);
  add_exec(sandbox, action);
  add_shell(sandbox, action);
  add_copy(sandbox, action);
  add_watch(sandbox, action, "logs", "Show what happened in a sandbox", /*default_last=*/0,
            cli::show_logs);
  add_watch(sandbox, action, "metrics", "Show the CPU, memory and disk a sandbox uses",
            /*default_last=*/20, cli::show_metrics);
  add_kill(sandbox, action);

  CLI::App* templates = app.add_subcommand("template", "What sandboxes are created from");
  templates->require_subcommand(1);
  CLI::App* list = templates->add_subcommand("ls", "List templates");
  const auto common = add_common(list);
  add_json(list, common, "Print the API's objects as an array");
  list->callback([=, &action] {
    action = [=] { return cli::list_templates(common->server, common->format()); };
  });
}

}  // namespace alcove

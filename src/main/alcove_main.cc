// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "api/key_maker.h"
#include "base/log.h"
#include "base/strings.h"
#include "cli/client_settings.h"
#include "cli/completion.h"
#include "cli/doctor_command.h"
#include "cli/key_command.h"
#include "cli/printable.h"
#include "cli/run_command.h"
#include "main/command_tree.h"
#include "main/data_dir.h"
#include "main/listen_address.h"
#include "main/log_sink.h"
#include "main/sandbox_flags.h"
#include "main/serve.h"

namespace {

using alcove::Action;
using alcove::Result;
using alcove::cli::Format;

constexpr const char* kFooter =
    "Exit codes: 0 success, 1 failure, 2 wrong usage; `sandbox exec` and `shell` pass on the "
    "program's.\n\n"
    "Examples:\n"
    "  alcove doctor                          can this machine run sandboxes?\n"
    "  ID=$(alcove sandbox create)\n"
    "  alcove sandbox exec $ID -- uname -a\n"
    "  alcove sandbox shell $ID\n"
    "  alcove sandbox kill $ID\n"
    "  alcove COMMAND --help                  more, with examples";

// Success of a command that has no exit code of its own.
Result<int> code_of(const Result<void>& result) {
  if (!result) return alcove::fail(result.error());
  return alcove::cli::kSuccess;
}

struct KeyFlags {
  std::string team{alcove::api::kDefaultTeam};
  std::string name = "made by the command line";
  std::string key;
  bool json = false;

  Format format() const { return json ? Format::kJson : Format::kText; }
};

void add_key_commands(CLI::App& app, const std::function<void(CLI::App*)>& add_data_dir,
                      const std::string& data_dir, KeyFlags& flags, Action& action) {
  const auto database = [&data_dir] { return data_dir + "/alcove.db"; };
  CLI::App* key = app.add_subcommand("key", "API keys");
  key->require_subcommand(1);
  key->footer("Works on the data directory itself: as root, on the server's machine.");

  CLI::App* create =
      key->add_subcommand("create", "Make a key and print it; it is shown only once");
  add_data_dir(create);
  create->add_option("--team", flags.team, "Whose sandboxes the key sees; made if new")
      ->capture_default_str();
  create->add_option("--name", flags.name, "What it is for")->capture_default_str();
  create->add_flag("--json", flags.json, "Print the key, its id, team and name as JSON");
  create->callback([=, &flags, &action] {
    action = [=, &flags] {
      return alcove::cli::create_key({.database = database(),
                                      .team = flags.team,
                                      .name = flags.name,
                                      .format = flags.format()});
    };
  });

  CLI::App* list = key->add_subcommand("ls", "List keys; of each only its first and last letters");
  add_data_dir(list);
  list->add_flag("--json", flags.json, "Print an array of objects");
  list->callback([=, &flags, &action] {
    action = [=, &flags] { return alcove::cli::list_keys(database(), flags.format()); };
  });

  CLI::App* revoke = key->add_subcommand(
      "revoke", "Remove a key; a running server refuses it within seconds. Prints its id");
  add_data_dir(revoke);
  revoke->add_option("key", flags.key, "Its id (`alcove key ls`), or the key itself")->required();
  revoke->callback([=, &flags, &action] {
    action = [=, &flags] { return alcove::cli::revoke_key(database(), flags.key); };
  });
}

struct DoctorFlags {
  std::vector<std::string> listen = alcove::ServeOptions().listen;
  alcove::cli::DoctorOptions options;
  bool json = false;
};

void add_doctor(CLI::App& app, const std::function<void(CLI::App*)>& add_data_dir,
                const std::string& data_dir, DoctorFlags& flags, Action& action) {
  CLI::App* command = app.add_subcommand("doctor", "Say whether this machine can run sandboxes");
  add_data_dir(command);
  command->add_option("--listen", flags.listen, "Addresses that the server is to have")
      ->capture_default_str();
  command->add_flag("--fix", flags.options.fix,
                    "Raise kernel settings that are too low, until the next boot");
  command->add_flag("-q,--quiet", flags.options.quiet, "Show only what is not in order");
  command->add_flag("--json", flags.json, "Print an object with all findings");
  command->footer(
      "Tries what sandboxes need, in processes that are thrown away, and says for each "
      "requirement\n"
      "whether it holds, what is lost if not, and the remedy. 1 only if no sandbox can run "
      "here.\n\n"
      "Examples:\n"
      "  sudo alcove doctor\n"
      "  sudo alcove doctor --fix --quiet\n"
      "  sudo alcove doctor --json | jq '.findings[] | select(.verdict != \"ok\")'");
  command->callback([&] {
    action = [&]() -> Result<int> {
      flags.options.plan.data_dir = data_dir;
      flags.options.plan.newest_format = alcove::kDataFormat;
      flags.options.format = flags.json ? Format::kJson : Format::kText;
      for (const std::string& text : flags.listen) {
        ALCOVE_TRY_ASSIGN(const alcove::ListenAddress parsed, alcove::parse_listen_address(text));
        flags.options.plan.listen.push_back({.address = parsed.address, .port = parsed.port});
      }
      return alcove::cli::run_doctor(flags.options);
    };
  });
}

void add_completion(CLI::App& app, std::string& shell, Action& action) {
  CLI::App* completion =
      app.add_subcommand("completion", "Print a script that completes commands in a shell");
  completion->add_option("shell", shell, "bash, zsh or fish")->required();
  completion->footer(
      "Examples:\n"
      "  source <(alcove completion bash)\n"
      "  alcove completion zsh > \"${fpath[1]}/_alcove\"\n"
      "  alcove completion fish > ~/.config/fish/completions/alcove.fish");
  completion->callback([&] {
    action = [&]() -> Result<int> {
      ALCOVE_TRY_ASSIGN(const std::string script,
                        alcove::cli::completion_script(shell, alcove::command_tree(app)));
      return code_of(alcove::cli::print(script));
    };
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "alcove gives AI agents a computer: it runs untrusted code in sandboxes and speaks the E2B "
      "protocol, so that the official E2B SDKs work against it unchanged.",
      "alcove");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all commands");
  app.footer(kFooter);
  Action action;

  // Not CLI11's envname(): it would take the variable for the commands that were not given, over
  // the flag of the one that was.
  std::string data_dir = alcove::cli::default_data_dir(alcove::cli::process_environment);
  const auto add_data_dir = [&](CLI::App* command) {
    command->add_option("--data-dir", data_dir, "Where all state lives (or ALCOVE_DATA)")
        ->capture_default_str();
  };

  alcove::ServeOptions serve_options;
  bool verbose = false;
  CLI::App* serve = app.add_subcommand("serve", "Run the server in the foreground");
  add_data_dir(serve);
  serve->add_option("--listen", serve_options.listen, "Addresses to serve on, e.g. 127.0.0.1:3000")
      ->capture_default_str();
  serve
      ->add_option("--templates", serve_options.templates,
                   "Folders whose sub-folders are template recipes")
      ->required();
  serve->add_option("--layers", serve_options.layers_dir,
                    "Where template layers are kept (default: below the data directory)");
  serve
      ->add_option(
          "--pool-size", serve_options.pool_size_bytes,
          "Size of the disk pool, e.g. 50G (default: 40 % of the free space, at most 100G); "
          "used when the pool is made")
      ->transform(CLI::AsSizeValue(/*kb_is_1000=*/false));
  serve->add_flag("--slim", serve_options.slim,
                  "Do not build templates that replace a smaller one, as the full "
                  "code-interpreter-v1");
  serve->add_flag("!--no-build-ca", serve_options.build_ca,
                  "Do not show this machine's CA bundle (SSL_CERT_FILE, or the system's) to the "
                  "steps of template builds");
  serve
      ->add_option("--dns", serve_options.resolvers,
                   "Name servers that sandboxes' questions are led to, e.g. 9.9.9.9,1.1.1.1 "
                   "(default: those of this machine's /etc/resolv.conf)")
      ->delimiter(',');
  serve->add_flag("--verbose", verbose, "Log debug lines too");
  serve->footer(
      "Runs until SIGTERM or Ctrl-C; sandboxes go on and are found again at the next start. "
      "Settings\n"
      "for clients are written to the file `env` in the data directory.\n\n"
      "Example:\n"
      "  sudo alcove serve --templates templates --listen 127.0.0.1:3000");
  serve->callback([&] {
    action = [&] {
      alcove::use_server_log();
      if (verbose) alcove::set_log_level(alcove::LogLevel::kDebug);
      serve_options.data_dir = data_dir;
      return code_of(alcove::serve(serve_options));
    };
  });

  DoctorFlags doctor_flags;
  add_doctor(app, add_data_dir, data_dir, doctor_flags, action);
  KeyFlags key_flags;
  add_key_commands(app, add_data_dir, data_dir, key_flags, action);
  alcove::add_sandbox_commands(app, action);

  CLI::App* end_all = app.add_subcommand(
      "end-all",
      "End every sandbox of a data directory whose server is down, and unmount its pool");
  add_data_dir(end_all);
  end_all->callback([&] { action = [&] { return code_of(alcove::end_all(data_dir)); }; });
  CLI::App* clean =
      app.add_subcommand("clean", "The same after a crash; success if there is nothing to clean");
  add_data_dir(clean);
  clean->callback([&] {
    action = [&]() -> Result<int> {
      if (!std::filesystem::exists(data_dir)) return alcove::cli::kSuccess;
      return code_of(alcove::end_all(data_dir));
    };
  });

  std::string shell;
  add_completion(app, shell, action);

  bool version_json = false;
  CLI::App* version = app.add_subcommand("version", "Print the version");
  version->add_flag("--json", version_json, "Print an object");
  version->callback([&] {
    action = [&] {
      return code_of(alcove::cli::print(version_json ? "{\"version\":\"" ALCOVE_VERSION "\"}\n"
                                                     : "alcove " ALCOVE_VERSION "\n"));
    };
  });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Prints the help that was asked for, or what is wrong.
    return app.exit(error) == 0 ? alcove::cli::kSuccess : alcove::cli::kUsage;
  }
  const Result<int> code = action();
  if (code) return *code;
  // It may name a file of a sandbox, or one that came out of it.
  std::fprintf(stderr, "alcove: %s\n", alcove::cli::printable(code.error().message()).c_str());
  return alcove::cli::kFailure;
}

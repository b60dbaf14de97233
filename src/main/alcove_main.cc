// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <cstdio>
#include <filesystem>
#include <string>

#include <CLI/CLI.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "cli/key_command.h"
#include "main/log_sink.h"
#include "main/serve.h"

namespace {

int report(const alcove::Result<void>& result) {
  if (result) return 0;
  std::fprintf(stderr, "alcove: %s\n", result.error().message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "alcove gives AI agents a computer: it runs untrusted code in sandboxes and speaks the E2B "
      "protocol, so that the official E2B SDKs work against it unchanged.");
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Help of all commands");

  std::string data_dir = "/var/lib/alcove";
  const auto add_data_dir = [&](CLI::App* command) {
    command->add_option("--data-dir", data_dir, "Where all state lives")
        ->envname("ALCOVE_DATA")
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
  serve->add_flag("!--no-build-ca", serve_options.build_ca,
                  "Do not show this machine's CA bundle (SSL_CERT_FILE, or the system's) to the "
                  "steps of template builds");
  serve
      ->add_option("--dns", serve_options.resolvers,
                   "Name servers that sandboxes' questions are led to, e.g. 9.9.9.9,1.1.1.1 "
                   "(default: those of this machine's /etc/resolv.conf)")
      ->delimiter(',');
  serve->add_flag("--verbose", verbose, "Log debug lines too");

  std::string team = "default";
  CLI::App* key = app.add_subcommand("key", "API keys");
  key->require_subcommand(1);
  CLI::App* key_create =
      key->add_subcommand("create", "Make a key and print it; it is shown only once");
  add_data_dir(key_create);
  key_create->add_option("--team", team, "Whose sandboxes the key sees; made if new")
      ->capture_default_str();

  CLI::App* end_all = app.add_subcommand(
      "end-all",
      "End every sandbox of a data directory whose server is down, and unmount its pool");
  add_data_dir(end_all);
  CLI::App* clean =
      app.add_subcommand("clean", "The same after a crash; success if there is nothing to clean");
  add_data_dir(clean);

  CLI::App* version = app.add_subcommand("version", "Print the version");

  CLI11_PARSE(app, argc, argv);

  if (*serve) {
    alcove::use_server_log();
    if (verbose) alcove::set_log_level(alcove::LogLevel::kDebug);
    serve_options.data_dir = data_dir;
    return report(alcove::serve(serve_options));
  }
  if (*key_create) return report(alcove::cli::create_key(data_dir + "/alcove.db", team));
  if (*end_all) return report(alcove::end_all(data_dir));
  if (*clean) return std::filesystem::exists(data_dir) ? report(alcove::end_all(data_dir)) : 0;
  if (*version) std::puts("alcove " ALCOVE_VERSION);
  return 0;
}

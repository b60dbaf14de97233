// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/command_tree.h"

#include <CLI/CLI.hpp>

namespace alcove {

cli::CommandTree command_tree(const CLI::App& app) {
  cli::CommandTree tree;
  tree.name = app.get_name();
  tree.help = app.get_description();
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      tree.options.push_back({.name = "--" + name, .help = option->get_description()});
    }
    for (const std::string& name : option->get_snames()) {
      tree.options.push_back({.name = "-" + name, .help = option->get_description()});
    }
    if (option->get_positional() && option->get_name() == "id") tree.takes_sandboxes = true;
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    tree.commands.push_back(command_tree(*command));
  }
  return tree;
}

}  // namespace alcove

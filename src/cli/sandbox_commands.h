// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "cli/client_settings.h"
#include "cli/run_command.h"

namespace alcove::cli {

// `alcove sandbox ...` and `alcove template ...`. Each returns the program's exit code.

struct CreateOptions {
  std::string template_name = "base";
  std::chrono::seconds timeout{300};
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env_vars;
  bool no_internet = false;
  Format format = Format::kText;
};
// Prints the new sandbox's id.
Result<int> create_sandbox(const ClientFlags& flags, const CreateOptions& options);

struct ListOptions {
  std::map<std::string, std::string> metadata;
  std::string template_name;
  // Ids only.
  bool quiet = false;
  Format format = Format::kText;
};
Result<int> list_sandboxes(const ClientFlags& flags, const ListOptions& options);

Result<int> show_sandbox_info(const ClientFlags& flags, const std::string& id, Format format);

struct KillOptions {
  std::vector<std::string> ids;
  bool all = false;
};
// Kills as many as it can; a failure is told after the others were tried.
Result<int> kill_sandboxes(const ClientFlags& flags, const KillOptions& options);

struct WatchOptions {
  std::string id;
  // Of those that are there already, the last so many; 0: all.
  uint32_t last = 0;
  // Goes on until the sandbox has ended.
  bool follow = false;
  Format format = Format::kText;
};
Result<int> show_logs(const ClientFlags& flags, const WatchOptions& options);
Result<int> show_metrics(const ClientFlags& flags, const WatchOptions& options);

Result<int> list_templates(const ClientFlags& flags, Format format);

}  // namespace alcove::cli

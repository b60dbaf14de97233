// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"

namespace alcove {

struct ServeOptions {
  std::string data_dir = "/var/lib/alcove";
  // "<address>:<port>"; IPv6 addresses in brackets.
  std::vector<std::string> listen = {"127.0.0.1:3000", "[::1]:3000"};
  // Folders with template recipes.
  std::vector<std::string> templates;
  // Where layers are kept; empty = below the data directory.
  std::string layers_dir;
  // Whether build steps trust what this machine trusts (ca_bundle.h).
  bool build_ca = true;
  // Whether recipes that replace a smaller one are left out.
  bool slim = false;
  // Name servers for sandboxes; none: those of the host.
  std::vector<std::string> resolvers;
  // 0: chosen from the free space.
  uint64_t pool_size_bytes = 0;
};

// Runs the server until SIGTERM or SIGINT. Sandboxes go on afterwards.
Result<void> serve(const ServeOptions& options);

// Ends every sandbox of a data directory whose server is down, and takes its pool off.
Result<void> end_all(const std::string& data_dir);

}  // namespace alcove

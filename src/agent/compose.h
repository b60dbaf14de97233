// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "agent/paths.h"
#include "agent/users.h"
#include "base/result.h"

namespace alcove::agent {

// POST /files/compose (protocol/envd.md 3.5): makes one file of several, which are gone then.
struct ComposeRequest {
  std::vector<std::string> sources;
  std::string destination;
  std::optional<std::string> username;
};

// kInvalidArgument for broken JSON, no sources, no destination.
Result<ComposeRequest> decode_compose(std::string_view body);

// Replaces the paths by where they lead. kInvalidArgument as resolve_path().
Result<void> resolve_paths(ComposeRequest& request, const PathBase& base);

// Concatenates the sources in their order into a file beside the destination, renames that over
// the destination and deletes the sources. Blocks; takes resolved paths. A failure before the
// rename leaves everything as it was, except for directories made above the destination.
Result<void> compose_files(const std::vector<std::string>& sources, const std::string& destination,
                           const User& owner);

// The HTTP status for a failure of compose_files.
int compose_status(const Error& error);

// {"path":...,"name":...,"type":"file"}
std::string encode_composed(std::string_view path);

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::agent {

// Removes ".", "..", doubled and trailing slashes from an absolute path by its text alone (links
// are not looked at). "/" stays.
std::string clean_path(std::string_view absolute);

// Where a path of a request leads (protocol/envd.md 2B.2): empty is the default directory, "~" and
// relative paths are below the home, absolute ones are used as they are. "~name" and NUL bytes are
// kInvalidArgument.
struct PathBase {
  std::string home;
  std::optional<std::string> default_directory;
};
Result<std::string> resolve_path(std::string_view path, const PathBase& base);

// The last component; "/" for the root. Trailing slashes do not count.
std::string base_name(std::string_view path);
// All before the last component, "/" at least. Trailing slashes do not count.
std::string parent_path(std::string_view path);

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/access.h"
#include "base/result.h"

namespace alcove::agent {

// The parameters of a /files request.
struct FilesQuery {
  std::optional<std::string> path;
  std::optional<std::string> username;
  std::optional<std::string> signature;
  std::optional<int64_t> expiration;

  // What is signed, or was.
  FileAccess access(FileOperation operation) const {
    return {operation, path.value_or(""), username.value_or(""), signature, expiration};
  }
};

// kInvalidArgument for broken escapes and for an expiration that is no number.
Result<FilesQuery> parse_files_query(std::string_view query);

}  // namespace alcove::agent

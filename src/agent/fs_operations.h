// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "agent/entry_info.h"
#include "agent/users.h"
#include "base/result.h"

namespace alcove::agent {

// The operations behind filesystem.Filesystem, with the error codes of protocol/envd.md 2B.3. They
// block, run as root, and take resolved paths.

// Pre-order, each directory sorted by the bytes of its names, links not followed (but the
// directory itself may be one). `depth` 0 means 1. With Links::kOnRootMount errno EXDEV says that
// it cannot be done there.
Result<std::vector<EntryInfo>> list_directory(const std::string& path, uint32_t depth,
                                              const Accounts& accounts,
                                              Links links = Links::kAnywhere);

// kAlreadyExists if it is a directory, kInvalidArgument if it is something else.
Result<EntryInfo> make_directory(const std::string& path, const User& owner,
                                 const Accounts& accounts);

// Makes the destination's parents, then renames.
Result<EntryInfo> move_entry(const std::string& source, const std::string& destination,
                             const User& owner, const Accounts& accounts);

// Removes whatever is there, with all below it. Nothing there is a success.
Result<void> remove_entry(const std::string& path);

// Makes the directory and the missing ones above it, owned by `owner`, mode 0755; existing ones
// stay as they are. The error keeps errno (ENOTDIR, EEXIST: something else is in the way).
Result<void> ensure_directory(const std::string& path, const User& owner);

}  // namespace alcove::agent

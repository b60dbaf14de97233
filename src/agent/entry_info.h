// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "agent/metadata.h"
#include "agent/users.h"
#include "base/result.h"

namespace alcove::agent {

enum class FileType { kUnspecified = 0, kFile = 1, kDirectory = 2, kSymlink = 3 };

// What the protocol says about a file (protocol/envd.md 2B.1).
struct EntryInfo {
  std::string name;
  // Of the target, for a link; kUnspecified for a broken link, a device, a socket.
  FileType type = FileType::kUnspecified;
  std::string path;
  int64_t size = 0;
  // Permission bits only; of the target, for a link.
  uint32_t mode = 0;
  std::string permissions;
  std::string owner;
  std::string group;
  timespec modified{};
  // Only for links: where they lead in the end, or their own path if that cannot be told.
  std::optional<std::string> symlink_target;
  Metadata metadata;
  bool is_symlink = false;
};

// Which links are followed. On the root mount nothing can hang (root_mount.h); an error with EXDEV
// says that a link leads elsewhere.
enum class Links { kAnywhere, kOnRootMount };

// Blocks. The error keeps errno: ENOENT is kNotFound, everything else kInternal.
Result<EntryInfo> read_entry(const std::string& path, const Accounts& accounts);

// The same of `name` in `directory`, which is the thread's working directory: what matters for a
// long listing is the length of the way to each file.
Result<EntryInfo> read_entry_here(std::string name, std::string_view directory,
                                  const Accounts& accounts, Links links);

// "-rw-r--r--", "drwxr-xr-x", "Lrwxrwxrwx", "dtrwxrwxrwx", "Dcrw-rw-rw-".
std::string permission_text(mode_t mode);

// RFC 3339 in UTC with 0, 3, 6 or 9 digits of a second.
std::string timestamp_text(const timespec& time);

}  // namespace alcove::agent

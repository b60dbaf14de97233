// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"

namespace alcove::image::btrfs {

// The calls of btrfs that the pool needs. `fd` is a directory on the file system.

// Simple quotas (kernel >= 6.7), else ordinary ones. Success if they are on already.
Result<void> enable_quotas(int fd);
Result<void> create_subvolume(int parent_fd, const std::string& name);
Result<void> delete_subvolume(int parent_fd, const std::string& name);
// Limits what the subvolume that holds `fd` may refer to, data and metadata together.
Result<void> set_limit(int fd, uint64_t bytes);
// Asks the kernel to finish what was deleted, without waiting: freed space counts from then on.
void start_sync(int fd);
// Where the kernel shows its quotas: "/sys/fs/btrfs/<id>/qgroups".
Result<std::string> quota_directory(int fd);
// What the subvolume holds, data that waits to be written included; what was deleted counts until
// the next commit, half a minute later at most. Without `quota_directory` (no sysfs) it is what was
// counted at the last commit.
Result<uint64_t> used_bytes(int fd, const std::string& quota_directory);

}  // namespace alcove::image::btrfs

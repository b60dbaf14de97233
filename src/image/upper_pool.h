// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace alcove::image {

// The writable directories of one sandbox, both on the same file system.
struct Upper {
  std::string upper_dir;
  std::string work_dir;
};

struct PoolSpace {
  uint64_t total_bytes = 0;
  uint64_t free_bytes = 0;
};

// Where sandboxes' own changes live, each with a hard size limit. Thread-safe; calls block.
class UpperPool {
 public:
  struct Options {
    std::string data_dir;
    // 0: 40 % of the free space of the data directory, at most 100 GiB.
    uint64_t pool_size_bytes = 0;
  };

  virtual ~UpperPool() = default;

  // Probes what the machine can do, in this order: a btrfs pool file, plain directories (with a
  // warning in the log). Mounts the pool if need be. A pool that exists but cannot be used is an
  // error: its sandboxes must not be forgotten.
  static Result<std::unique_ptr<UpperPool>> open(const Options& options);

  // "btrfs" or "plain".
  virtual std::string kind() const = 0;

  virtual Result<Upper> create(const SandboxId& id, uint64_t limit_bytes) = 0;
  // The directories of a sandbox that exists already.
  virtual Upper find(const SandboxId& id) const = 0;
  // Deletes everything of the sandbox; success if there is nothing.
  virtual Result<void> remove(const SandboxId& id) = 0;
  // Every sandbox that has directories here: the start-up sweep removes the ones without a record.
  virtual Result<std::vector<SandboxId>> list() const = 0;
  // What the sandbox's own changes take. Quick, except for plain directories, which are walked.
  virtual Result<uint64_t> used_bytes(const SandboxId& id) const = 0;
  virtual Result<PoolSpace> space() const = 0;

  // Changes the limit. An overlay must not be mounted while its upper is at the limit: it would
  // come up read-only without an error (EGRESS-DISK.md 2.7).
  virtual Result<void> set_limit(const SandboxId& id, uint64_t limit_bytes) = 0;
};

// Unmounts a btrfs pool and lets its loop device go; success if none is mounted. Fails with EBUSY
// while a sandbox uses it. The content stays.
Result<void> unmount_pool(const std::string& data_dir);

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>

#include "base/unique_fd.h"
#include "image/upper_pool.h"

namespace alcove::image {

// One preallocated btrfs image file (<data>/pool.img, mounted on <data>/pool) with a subvolume and
// a quota for each sandbox. Preallocated, because a btrfs on a sparse file turns read-only for
// everybody when the host's disk is full. The mount outlives the server.
class BtrfsPool final : public UpperPool {
 public:
  // Makes or mounts the pool, or finds it mounted. kUnimplemented if this machine cannot have one
  // (no mkfs.btrfs, loop devices or btrfs in the kernel) and none exists.
  static Result<std::unique_ptr<BtrfsPool>> open(const Options& options);

  std::string kind() const override { return "btrfs"; }
  Result<Upper> create(const SandboxId& id, uint64_t limit_bytes) override;
  Upper find(const SandboxId& id) const override;
  Result<void> remove(const SandboxId& id) override;
  Result<std::vector<SandboxId>> list() const override;
  Result<uint64_t> used_bytes(const SandboxId& id) const override;
  Result<PoolSpace> space() const override;
  Result<void> set_limit(const SandboxId& id, uint64_t limit_bytes) override;

 private:
  BtrfsPool(std::string dir, UniqueFd root, std::string quota_dir)
      : dir_(std::move(dir)), root_(std::move(root)), quota_dir_(std::move(quota_dir)) {}
  Result<UniqueFd> open_subvolume(const SandboxId& id) const;

  std::string dir_;
  UniqueFd root_;
  std::string quota_dir_;
};

}  // namespace alcove::image

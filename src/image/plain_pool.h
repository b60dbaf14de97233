// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>

#include "image/upper_pool.h"

namespace alcove::image {

// Ordinary directories below <data>/uppers, without any limit: the last resort.
class PlainPool final : public UpperPool {
 public:
  static Result<std::unique_ptr<PlainPool>> open(const std::string& data_dir);
  // Whether sandboxes of an earlier server live in plain directories here.
  static bool is_in_use(const std::string& data_dir);

  std::string kind() const override { return "plain"; }
  Result<Upper> create(const SandboxId& id, uint64_t limit_bytes) override;
  Upper find(const SandboxId& id) const override;
  Result<void> remove(const SandboxId& id) override;
  Result<std::vector<SandboxId>> list() const override;
  Result<uint64_t> used_bytes(const SandboxId& id) const override;
  Result<PoolSpace> space() const override;
  // There is no limit to change.
  Result<void> set_limit(const SandboxId& id, uint64_t limit_bytes) override;

 private:
  explicit PlainPool(std::string dir) : dir_(std::move(dir)) {}

  std::string dir_;
};

}  // namespace alcove::image

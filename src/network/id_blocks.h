// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "network/id_range.h"

namespace alcove::network {

// Hands out blocks of host ids. Thread-safe.
class IdBlocks {
 public:
  virtual ~IdBlocks() = default;
  // The lowest block that nobody on this machine uses.
  virtual Result<uint32_t> acquire() = 0;
  // Takes a block that an adopted sandbox uses.
  virtual Result<void> claim(uint32_t block) = 0;
  virtual void release(uint32_t block) = 0;
};

// Keeps blocks apart between all servers of the machine: a lock file per block for those that a
// server holds, and the id maps of living processes for sandboxes whose server is gone.
class HostIdBlocks final : public IdBlocks {
 public:
  // `patience`: how long claim() waits for a server that is just dying to let the block go.
  explicit HostIdBlocks(std::string lock_dir = "/run/alcove/id-blocks",
                        std::chrono::milliseconds patience = std::chrono::seconds(5))
      : lock_dir_(std::move(lock_dir)), patience_(patience) {}

  Result<uint32_t> acquire() override;
  Result<void> claim(uint32_t block) override;
  void release(uint32_t block) override;

 private:
  Result<UniqueFd> lock(uint32_t block);

  std::string lock_dir_;
  std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::map<uint32_t, UniqueFd> held_;
};

// The blocks that the text of a uid_map touches. The initial namespace's map touches none.
std::set<uint32_t> blocks_of_map(std::string_view uid_map);

}  // namespace alcove::network

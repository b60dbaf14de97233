// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <compare>
#include <cstdint>

namespace alcove::network {

// The host's 2^32 user and group ids are cut into 128 blocks of 512 ranges of 65,536. A template's
// user namespace gets a block, each of its sandboxes a range. Block 0 belongs to the host, and
// range 0 of each block to the root of the template's namespace itself.
inline constexpr uint32_t kBlocks = 128;
inline constexpr uint32_t kRangesPerBlock = 512;
inline constexpr uint32_t kIdsPerRange = 65'536;
inline constexpr uint32_t kIdsPerBlock = kRangesPerBlock * kIdsPerRange;

struct IdRange {
  uint32_t block = 0;
  uint32_t index = 0;

  // The host id of root in this range. A host id's lower 16 bits are the id inside.
  uint32_t first_id() const { return block * kIdsPerBlock + index * kIdsPerRange; }
  bool valid() const {
    return block > 0 && block < kBlocks && index > 0 && index < kRangesPerBlock;
  }
  friend auto operator<=>(const IdRange&, const IdRange&) = default;
};

// The range that this id of the host belongs to.
constexpr IdRange range_of(uint32_t host_id) {
  return {.block = host_id / kIdsPerBlock, .index = host_id % kIdsPerBlock / kIdsPerRange};
}

}  // namespace alcove::network

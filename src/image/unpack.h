// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "image/tree.h"

namespace alcove::image {

// What an archive may grow to.
struct UnpackLimits {
  uint64_t max_bytes = 20ull << 30;
  uint64_t max_entries = 2'000'000;
};

// Unpacks a tar file (plain, gzip, bzip2, xz or zstd) of unknown origin into an existing directory.
// Owners are the archive's numbers. Nothing is written outside `target`, whatever names and links
// the archive has: a name that is absolute or has ".." is an error; symbolic links on the way are
// resolved as if `target` were the root directory. Device nodes and sockets are left out, and of
// the extended attributes those that is_allowed_in_layer() refuses.
Result<void> unpack_tar(const std::string& tar_path, const std::string& target,
                        const UnpackLimits& limits, const Notice& notice);

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"

namespace alcove::sys {

// Ends the FUSE file systems that were mounted by the host's user ids `first_id` and the `count -
// 1` after it, in whatever namespace: everybody who waits for an answer of theirs gets an error. A
// process that waits for one cannot even be killed, and if it has the file system's own device
// open, waits forever. Success if the kernel has no FUSE.
Result<void> abort_fuse_connections(uint32_t first_id, uint32_t count);

}  // namespace alcove::sys

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace alcove::node {

// Less is a clock that is kept right, not one that is set.
inline constexpr std::chrono::seconds kSmallestClockStep{1};

// Notes in the store how far the system's clock is from the time since the machine's boot, and
// returns by how much somebody has set it since the last note; nothing after a boot.
Result<WallTime::duration> note_clock(store::Store& store, const Clock& clock);

}  // namespace alcove::node

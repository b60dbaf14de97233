// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <initializer_list>

#include "base/result.h"

namespace alcove::sys {

// Gives up every other capability for good, for this process and what it may execute, and sets
// no_new_privs. For single-threaded programs.
Result<void> keep_only_capabilities(std::initializer_list<int> kept);

}  // namespace alcove::sys

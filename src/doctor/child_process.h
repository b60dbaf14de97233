// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>

#include "base/result.h"

namespace alcove::doctor {

// Runs `body` in a process of its own, which ends with it: what it does to its namespaces and
// mounts is gone afterwards. `body` returns 0 or an errno, which becomes the error. Only for
// programs that have one thread.
Result<void> in_child(const std::function<int()>& body);

}  // namespace alcove::doctor

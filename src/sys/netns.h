// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

// The calling thread's network namespace.
Result<UniqueFd> open_own_netns();

enum class IpFamily { kV4, kV6 };

// A non-blocking TCP socket that belongs to the namespace `netns`, with a connect to its loopback
// address under way or done. The calling thread visits the namespace and goes back to `home`;
// other threads do not notice.
Result<UniqueFd> connect_loopback_in(int netns, int home, IpFamily family, uint16_t port);

}  // namespace alcove::sys

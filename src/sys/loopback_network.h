// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <netinet/in.h>

namespace alcove::sys {

// Makes `lo` of the calling thread's network namespace the way to everywhere: what programs send
// to any address comes back in through the namespace's own hooks. Each returns 0 or an errno.

// Brings `lo` up with this address, from which everything is sent.
int lead_ipv4_to_loopback(in_addr address);
// Afterwards, the same for IPv6.
int lead_ipv6_to_loopback(in6_addr address);

}  // namespace alcove::sys

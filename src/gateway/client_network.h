// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

namespace alcove::gateway {

// Whom a connection counts for in a limit: the address without its port, and of IPv6 the /64,
// because whoever has one address there has 2^64. `peer` is as Exchange::peer_address() has it.
std::string client_network(std::string_view peer);

}  // namespace alcove::gateway

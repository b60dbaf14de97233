// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

namespace alcove::net {

// "127.0.0.1:80" or "[::1]:80" of the other end, "unix" for Unix sockets, "" if not connected.
std::string peer_address(int socket);

}  // namespace alcove::net

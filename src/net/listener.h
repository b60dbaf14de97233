// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::net {

// Whether several loops may each listen on the same port; the kernel spreads the connections.
enum class ReusePort { kNo, kYes };

// A listening TCP socket on a numeric IPv4 or IPv6 address ("0.0.0.0", "::1"; names are not
// resolved). Port 0 lets the kernel choose. An IPv6 socket takes IPv6 only.
Result<UniqueFd> make_listener(const std::string& address, uint16_t port,
                               ReusePort reuse_port = ReusePort::kNo);

// The port a socket is bound to.
Result<uint16_t> local_port(const UniqueFd& socket);

// Begins a connection to a numeric address; net::finish_connect() waits for its end.
Result<UniqueFd> start_connect(const std::string& address, uint16_t port);

}  // namespace alcove::net

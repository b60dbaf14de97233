// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::relay {

// The relay of a data directory: a lock that says there is one, and the socket where it listens.
// Paths of any length; the names are relay.lock and relay.sock.

// kFailedPrecondition if another relay holds it.
Result<UniqueFd> lock_relay(const std::string& data_dir);
// The caller holds the lock. Non-blocking.
Result<UniqueFd> listen_for_servers(const std::string& data_dir);
// Neither this nor a request waits longer than that for a relay that takes nothing any more.
Result<UniqueFd> connect_to_relay(const std::string& data_dir, std::chrono::milliseconds patience);

}  // namespace alcove::relay

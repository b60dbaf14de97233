// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "agent/init_message.h"
#include "agent/journal_message.h"
#include "base/result.h"
#include "http/client_connection.h"
#include "net/task.h"

namespace alcove::agent {

// The host's side of the agent's protocol. The agent runs among untrusted programs: its answers are
// limited and prove nothing but that something answered.

// Sends POST /init and demands 204. `control_token` is the one an earlier init fixed, if any. The
// connection can be used again after a success. kDeadlineExceeded if it takes longer than `limit`,
// kUnauthenticated if the agent refuses.
Task<Result<void>> initialize(http::ClientConnection& connection, InitRequest request,
                              std::optional<std::string> control_token,
                              std::chrono::milliseconds limit = std::chrono::seconds(10));

// Sends GET /health and demands a 2xx.
Task<Result<void>> check_health(http::ClientConnection& connection,
                                std::chrono::milliseconds limit = std::chrono::seconds(5));

// Asks for the last starts and ends of processes, oldest first. An agent of an earlier version
// knows no such path and refuses it (kUnimplemented).
Task<Result<std::vector<JournalLine>>> read_journal(http::ClientConnection& connection,
                                                    std::string control_token,
                                                    std::chrono::milliseconds limit);

}  // namespace alcove::agent

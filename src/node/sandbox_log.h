// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

#include "node/log_entry.h"
#include "node/running_sandbox.h"

namespace alcove::node {

// An agent that runs answers within a millisecond or two. An end waits no longer for one that does
// not: its last lines are lost instead.
inline constexpr std::chrono::milliseconds kFetchBeforeEnd{250};

// The log of a sandbox: its creation, what the server noted since, and the lines about processes,
// in the order of time.
Log whole_log(const RunningSandbox& sandbox, Log process_lines);

}  // namespace alcove::node

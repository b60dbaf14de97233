// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "agent/client.h"
#include "base/result.h"
#include "net/task.h"
#include "sandbox/driver.h"

namespace alcove::node {

// Tells a freshly booted agent who it is. When it returns, the agent serves clients.
Task<Result<void>> introduce_agent(sandbox::Machine& machine, agent::InitRequest request);

}  // namespace alcove::node

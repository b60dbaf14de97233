// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>

#include "agent/outbox.h"
#include "agent/process.h"
#include "agent/process_table.h"
#include "connect/connect.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// Answers Start or Connect: what the subscriber gets until the process is over, the call's deadline
// passes or the client leaves.
Task<void> stream_events(http::Exchange& exchange, connect::CallInfo call,
                         std::shared_ptr<Process> process, std::shared_ptr<Outbox> subscriber);

// The answer for a process that is over.
Task<void> stream_ended(http::Exchange& exchange, connect::CallInfo call,
                        ProcessTable::Ended ended);

}  // namespace alcove::agent

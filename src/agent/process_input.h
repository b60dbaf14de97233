// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <optional>

#include "agent/input_meter.h"
#include "agent/process.h"
#include "agent/process_messages.h"
#include "agent/process_table.h"
#include "base/result.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// Writes to a process while nothing reads the request's body. A client that gives up leaves no
// write behind that waits for ever and blocks others.
Task<Result<void>> send_to_process(http::Exchange& exchange, std::shared_ptr<Process> process,
                                   ProcessInput input, std::optional<Process::TimePoint> deadline);

// Serves StreamInput: every message reaches the process while the body is still open. Errors and
// the deadline are answered without waiting for the body's end; the process goes on.
Task<void> stream_to_process(http::Exchange& exchange, const ProcessTable& table,
                             InputMeter& meter);

}  // namespace alcove::agent

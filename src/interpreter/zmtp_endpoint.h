// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/result.h"
#include "net/stream.h"
#include "net/task.h"

namespace alcove::interpreter {

// Connects to "ipc:///path" or "tcp://127.0.0.1:5555" (numeric addresses only). The error carries
// the errno: ECONNREFUSED or ENOENT while nobody listens there.
Task<Result<std::unique_ptr<net::Stream>>> connect_zmtp_endpoint(std::string endpoint,
                                                                 std::chrono::milliseconds timeout);

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/stream.h"
#include "net/task.h"
#include "node/node.h"

namespace alcove::gateway {

// Whether a closed port may be about to open: then it is tried five times within a second.
enum class Patience { kNone, kStarting };

struct DialOptions {
  Patience patience = Patience::kNone;
  // TLS with the service, which is asked for by this name (may be empty). Its certificate is not
  // checked: nobody but the sandbox is at the other end of the connection.
  std::optional<std::string> tls_name;
};

// A connection to a port inside the sandbox: 127.0.0.1 first, then ::1. kNotFound if the sandbox
// is not running any more, kUnavailable if the port is closed, kDeadlineExceeded if the service
// does not accept, kFailedPrecondition if it does not speak TLS, kResourceExhausted if this machine
// could not even ask (descriptors, memory).
Task<Result<std::unique_ptr<net::Stream>>> dial(node::LiveSandboxPtr sandbox, uint16_t port,
                                                DialOptions options);

}  // namespace alcove::gateway

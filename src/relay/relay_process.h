// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>

#include "base/result.h"

namespace alcove::relay {

// Starts the relay of a data directory in a session of its own; returns when it serves.
Result<pid_t> start_relay(const std::string& program, const std::string& data_dir,
                          std::chrono::milliseconds timeout);

}  // namespace alcove::relay

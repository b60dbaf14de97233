// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "api/errors.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::api {

struct BodyLimits {
  uint64_t size = 16ull << 20;
  // Without a byte.
  std::chrono::steady_clock::duration idle = std::chrono::seconds(30);
  // From the head to the last byte. No client waits that long for its answer.
  std::chrono::steady_clock::duration total = std::chrono::seconds(120);
};

// The whole body; 413 if it is too long. One that does not arrive in time is 408 and the end of its
// connection, which a client could otherwise hold for ever by a byte now and then.
Task<ApiResult<std::string>> read_body(http::Exchange& exchange, const BodyLimits& limits);

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/result.h"
#include "net/task.h"

namespace alcove::http {

// A message body that arrives piece by piece, chunked coding already taken off.
class BodyReader {
 public:
  virtual ~BodyReader() = default;

  // At least one byte, or 0 at the end of the body. kUnavailable if the peer is gone before it,
  // kInvalidArgument for broken framing. Returns as soon as anything is there: nothing is held
  // back to fill the buffer.
  virtual Task<Result<size_t>> read(std::span<char> buffer) = 0;

  // Content-Length, if the message has one.
  virtual std::optional<uint64_t> length() const = 0;

  // The whole body; kResourceExhausted if it is longer than `limit`.
  Task<Result<std::string>> read_all(uint64_t limit);
};

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"
#include "http/message.h"

namespace alcove::http {

// How the end of a received body is found.
struct Framing {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;
};

// Checks what Beast accepts and we do not: Host, target form, framing fields. The target is
// brought to origin form ("/path?query"; Host then comes from an absolute target).
Result<Framing> check_request(RequestHead& head);

// Request smuggling starts where two parsers see different ends: anything ambiguous is an error.
Result<Framing> response_framing(const ResponseHead& head, int version_minor,
                                 std::string_view request_method);

// Whether the sender of the head means to keep the connection.
bool wants_keep_alive(const Headers& headers, int version_minor);

}  // namespace alcove::http

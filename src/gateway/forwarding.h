// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>

#include "base/result.h"
#include "http/message.h"

namespace alcove::gateway {

// Whether a switch of protocols is passed on.
enum class Upgrade { kNone, kRequested };

// What the client asks for. Nothing is passed on for a request with a body (nobody does that
// honestly) or on the agent's port: a tunnel there would get around the check of each path.
Upgrade requested_upgrade(const http::RequestHead& request, uint16_t port);

// True if the request announces a body (also an empty one with Content-Length: 0).
bool announces_body(const http::RequestHead& request);

// The head as the service gets it: origin-form target, the same Host, without the fields that
// belong to the client's own connection (RFC 9110, 7.6.1) and without framing, which is made anew.
// kInvalidArgument if Connection names more fields than anybody has a use for.
Result<http::RequestHead> make_upstream_head(const http::RequestHead& request, Upgrade upgrade);

// Takes from a service's answer the fields that belong to the connection to it, and framing.
// Errors as above.
Result<void> clean_response_headers(http::ResponseHead& head);

// GET and its like may be repeated when a kept connection turns out to be dead.
bool is_idempotent(const http::RequestHead& request);

}  // namespace alcove::gateway

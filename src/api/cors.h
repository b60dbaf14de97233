// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "http/message.h"

namespace alcove::api {

// Browsers may call from any origin: callers show a key in a header, so no ambient right (cookie)
// can be abused.

// For every answer.
void add_cors_headers(http::Headers& headers);
// The answer to OPTIONS, on any path.
http::Response preflight_response(const http::RequestHead& request);

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "http/exchange.h"
#include "http/message.h"
#include "net/task.h"

namespace alcove::agent {

// {"code":404,"message":"..."}: the shape of errors on the paths that are not RPCs.
http::Response rest_error(int status, std::string_view message);
Task<void> respond_rest_error(http::Exchange& exchange, int status, std::string message);
// A line of plain text.
http::Response text_response(int status, std::string_view message);

}  // namespace alcove::agent

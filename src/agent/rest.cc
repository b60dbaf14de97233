// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/rest.h"

#include <utility>

#include "base/strings.h"
#include "connect/json_writer.h"

namespace alcove::agent {

http::Response rest_error(int status, std::string_view message) {
  http::Response response;
  response.status = status;
  response.headers = {{"Content-Type", "application/json; charset=utf-8"},
                      {"X-Content-Type-Options", "nosniff"}};
  response.body = cat("{\"code\":", status, ",\"message\":");
  connect::append_json_string(response.body, message);
  response.body += "}\n";
  return response;
}

Task<void> respond_rest_error(http::Exchange& exchange, int status, std::string message) {
  (void)co_await exchange.respond(rest_error(status, message));
}

http::Response text_response(int status, std::string_view message) {
  http::Response response;
  response.status = status;
  response.headers = {{"Content-Type", "text/plain; charset=utf-8"},
                      {"X-Content-Type-Options", "nosniff"}};
  response.body = cat(message, "\n");
  return response;
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/cors.h"

#include <string>

namespace alcove::api {

void add_cors_headers(http::Headers& headers) {
  headers.set("Access-Control-Allow-Origin", "*");
  headers.set("Access-Control-Expose-Headers",
              "X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, "
              "RateLimit-Reset, Retry-After");
}

http::Response preflight_response(const http::RequestHead& request) {
  http::Response response{.status = 204, .headers = {}, .body = {}};
  response.headers.set("Access-Control-Allow-Methods",
                       "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS");
  // Clients send headers of their own and of their users, so whatever is asked for is allowed.
  const auto asked = request.headers.get("Access-Control-Request-Headers");
  response.headers.set("Access-Control-Allow-Headers",
                       std::string(asked.value_or("Authorization, Content-Type, X-API-Key")));
  response.headers.set("Access-Control-Max-Age", "7200");
  response.headers.set("Vary", "Access-Control-Request-Headers");
  return response;
}

}  // namespace alcove::api

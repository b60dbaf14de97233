// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/cors.h"

#include <algorithm>
#include <array>
#include <utility>

namespace alcove::agent {

std::optional<http::Response> preflight_response(const http::RequestHead& request) {
  const auto method = request.headers.get("Access-Control-Request-Method");
  if (request.method != "OPTIONS" || !method) return {};
  http::Response response;
  response.status = 204;
  response.headers = {
      {"Vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}};
  constexpr std::array<std::string_view, 6> kMethods = {"HEAD", "GET",   "POST",
                                                        "PUT",  "PATCH", "DELETE"};
  const bool known = std::find(kMethods.begin(), kMethods.end(), *method) != kMethods.end();
  if (!request.headers.has("Origin") || !known) return response;
  response.headers.add("Access-Control-Allow-Origin", "*");
  response.headers.add("Access-Control-Allow-Methods", std::string(*method));
  if (const auto wanted = request.headers.get("Access-Control-Request-Headers")) {
    response.headers.add("Access-Control-Allow-Headers", std::string(*wanted));
  }
  response.headers.add("Access-Control-Max-Age", "7200");
  return response;
}

void CorsExchange::add_fields(http::Headers& headers) const {
  headers.add("Vary", "Origin");
  if (!inner_.request().headers.has("Origin")) return;
  headers.add("Access-Control-Allow-Origin", "*");
  headers.add("Access-Control-Expose-Headers",
              "Grpc-Status, Grpc-Message, Grpc-Status-Details-Bin, Location, Cache-Control, "
              "X-Content-Type-Options");
}

Task<Result<void>> CorsExchange::respond(http::Response response) {
  add_fields(response.headers);
  return inner_.respond(std::move(response));
}

Task<Result<void>> CorsExchange::start(http::ResponseHead head, http::BodyLength length) {
  add_fields(head.headers);
  return inner_.start(std::move(head), length);
}

Task<Result<void>> CorsExchange::start_with(http::ResponseHead head, http::BodyLength length,
                                            std::string_view first) {
  add_fields(head.headers);
  return inner_.start_with(std::move(head), length, first);
}

}  // namespace alcove::agent

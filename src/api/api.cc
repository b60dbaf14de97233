// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/api.h"

#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "api/cors.h"
#include "api/errors.h"
#include "api/router.h"
#include "base/log.h"
#include "base/strings.h"
#include "http/url.h"

namespace alcove::api {
namespace {

// The key that a request shows; empty if it shows none.
std::string_view presented_key(const http::RequestHead& head, Access access) {
  if (const auto key = head.headers.get("X-API-Key"); key && !key->empty()) return *key;
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view bearer = head.headers.get("Authorization").value_or("");
  if (access == Access::kApiKeyOrBearer &&
      equal_ignoring_case(bearer.substr(0, kScheme.size()), kScheme)) {
    return trim(bearer.substr(kScheme.size()));
  }
  return {};
}

http::Response no_route(const Match& match, const http::RequestHead& head) {
  if (match.allowed.empty()) {
    return error_response({404, cat("no route for ", head.method, " ", head.path())});
  }
  http::Response response =
      error_response({405, cat("method ", head.method, " is not allowed for ", head.path())});
  std::string allowed;
  for (const std::string_view method : match.allowed) {
    allowed += cat(allowed.empty() ? "" : ", ", method);
  }
  response.headers.set("Allow", allowed);
  return response;
}

// Who calls, or the refusal.
Task<ApiResult<Principal>> let_in(KeyRing& keys, std::string key) {
  if (key.empty()) {
    co_return refuse(401, "API key is missing: send it in the X-API-Key header.");
  }
  auto principal = co_await keys.authenticate(std::move(key));
  if (!principal) co_return refuse(internal_error("checking the API key", principal.error()));
  if (!*principal) co_return refuse(401, "Invalid API key.");
  co_return **std::move(principal);
}

bool takes_body(std::string_view method) {
  return method == "POST" || method == "PUT" || method == "PATCH";
}

}  // namespace

Api::Api(Dependencies dependencies)
    : services_{.node = dependencies.node,
                .clock = dependencies.clock,
                .templates = dependencies.templates,
                .readiness = dependencies.readiness,
                .settings = std::move(dependencies.settings),
                .kills = {},
                .keyed_creates =
                    KeyedCreates(dependencies.store, dependencies.store_pool, dependencies.clock)},
      keys_(dependencies.keys),
      body_limits_(dependencies.body_limits) {}

Task<http::Response> Api::answer(http::Exchange& exchange) {
  const http::RequestHead& head = exchange.request();
  if (head.method == "OPTIONS") co_return preflight_response(head);
  const auto segments = http::path_segments(head.path());
  if (!segments) co_return error_response({400, "the path is not properly encoded"});
  Match match = match_route(routes(), head.method, *segments);
  if (match.route == nullptr) co_return no_route(match, head);

  Call call{.head = head,
            .key = {},
            .principal = {},
            .parameters = std::move(match.parameters),
            .body = {}};
  if (match.route->access != Access::kOpen) {
    call.key = presented_key(head, match.route->access);
    auto principal = co_await let_in(keys_, call.key);
    if (!principal) co_return error_response(principal.error());
    call.principal = *std::move(principal);
  }
  // After the key: strangers cannot make the server hold large bodies.
  if (takes_body(head.method)) {
    auto body = co_await read_body(exchange, body_limits_);
    if (!body) co_return error_response(body.error());
    call.body = *std::move(body);
  }
  co_return co_await match.route->handler(services_, call);
}

Task<void> Api::handle(http::Exchange& exchange) {
  std::optional<http::Response> response;
  try {
    response = co_await answer(exchange);
  } catch (const std::exception& failure) {
    // The server's own answer would not be JSON, which the Python clients cannot read.
    log_error(cat(exchange.request().method, " ", exchange.request().path(), ": ", failure.what()));
    response = final_error_response({500, "internal error", "internal_server_error"});
  }
  add_cors_headers(response->headers);
  // A client that has gone away needs no answer.
  (void)co_await exchange.respond(*std::move(response));
}

}  // namespace alcove::api

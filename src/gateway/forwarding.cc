// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/forwarding.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "gateway/routing.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

// Fields about one connection only. Expect is here because the gateway answers it itself.
constexpr std::array<std::string_view, 9> kConnectionFields = {
    "connection", "keep-alive",     "te",     "trailer",       "transfer-encoding",
    "upgrade",    "content-length", "expect", "http2-settings"};

bool is_connection_field(std::string_view name) {
  for (const std::string_view field : kConnectionFields) {
    if (field.size() == name.size() && equal_ignoring_case(name, field)) return true;
  }
  return name.size() > 6 && equal_ignoring_case(name.substr(0, 6), "proxy-");
}

// Each field of a head is compared with each name in its Connection: a head full of both would hold
// up the loop.
constexpr size_t kMostNamed = 32;

// The fields that Connection names, besides the usual words. Fields without which a request means
// something else cannot be taken away by naming them.
Result<std::vector<std::string_view>> named_by_connection(const http::Headers& headers) {
  constexpr std::array<std::string_view, 6> kIgnored = {
      "close", "keep-alive", "upgrade", "host", "e2b-traffic-access-token", "x-access-token"};
  std::vector<std::string_view> named;
  for (const auto& [name, value] : headers) {
    if (name.size() != 10 || !equal_ignoring_case(name, "connection")) continue;
    for (const std::string_view part : split(value, ',')) {
      const std::string_view token = trim(part);
      const bool ignored =
          std::any_of(kIgnored.begin(), kIgnored.end(),
                      [&](std::string_view word) { return equal_ignoring_case(token, word); });
      if (token.empty() || ignored) continue;
      if (named.size() == kMostNamed) {
        return fail(Code::kInvalidArgument, "Connection names too many fields");
      }
      named.push_back(token);
    }
  }
  return named;
}

bool is_named(const std::vector<std::string_view>& named, std::string_view name) {
  return std::any_of(named.begin(), named.end(),
                     [&](std::string_view token) { return equal_ignoring_case(token, name); });
}

}  // namespace

Upgrade requested_upgrade(const http::RequestHead& request, uint16_t port) {
  if (port == kAgentPort || request.version_minor < 1) return Upgrade::kNone;
  if (!request.headers.has("Upgrade") || !request.headers.has_token("Connection", "upgrade")) {
    return Upgrade::kNone;
  }
  return announces_body(request) ? Upgrade::kNone : Upgrade::kRequested;
}

bool announces_body(const http::RequestHead& request) {
  return request.headers.has("Transfer-Encoding") ||
         request.headers.get("Content-Length").value_or("0") != "0";
}

Result<http::RequestHead> make_upstream_head(const http::RequestHead& request, Upgrade upgrade) {
  const Target target = split_target(request.target);
  http::RequestHead head;
  head.method = request.method;
  head.target = target.path_and_query;
  // "http://host" and "http://host?x" have an empty path, which is '/' in origin form.
  if (!target.authority.empty() && !head.target.starts_with('/')) head.target.insert(0, 1, '/');

  ALCOVE_TRY_ASSIGN(const auto named, named_by_connection(request.headers));
  bool has_host = false;
  for (const auto& [name, value] : request.headers) {
    if (is_connection_field(name) || is_named(named, name)) continue;
    if (name.size() == 4 && equal_ignoring_case(name, "host")) {
      if (has_host) continue;
      has_host = true;
      if (!target.authority.empty()) {
        head.headers.add(name, std::string(target.authority));
        continue;
      }
    }
    head.headers.add(name, value);
  }
  if (!has_host) head.headers.add("Host", "localhost");
  if (upgrade == Upgrade::kRequested) {
    head.headers.add("Connection", "Upgrade");
    head.headers.add("Upgrade", std::string(request.headers.get("Upgrade").value_or("")));
  }
  return head;
}

Result<void> clean_response_headers(http::ResponseHead& head) {
  ALCOVE_TRY_ASSIGN(const auto named, named_by_connection(head.headers));
  // 426 says by it which protocol it wants (RFC 9110, 15.5.22).
  const bool keeps_upgrade = head.status == 101 || head.status == 426;
  bool has_upgrade = false;
  http::Headers kept;
  for (const auto& [name, value] : head.headers) {
    const bool of_upgrade = keeps_upgrade && equal_ignoring_case(name, "upgrade");
    if (!of_upgrade && (is_connection_field(name) || is_named(named, name))) continue;
    has_upgrade |= of_upgrade;
    kept.add(name, value);
  }
  if (head.status == 101 || has_upgrade) kept.add("Connection", "Upgrade");
  head.headers = std::move(kept);
  return {};
}

bool is_idempotent(const http::RequestHead& request) {
  constexpr std::array<std::string_view, 5> kMethods = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
  return std::find(kMethods.begin(), kMethods.end(), request.method) != kMethods.end();
}

}  // namespace alcove::gateway

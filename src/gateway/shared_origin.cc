// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/shared_origin.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "gateway/error_page.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

// No allow-same-origin: the document has an origin of its own, without cookies, storage or service
// workers, and reads nothing of the API or of other sandboxes.
constexpr std::string_view kPolicy = "sandbox allow-scripts allow-forms";

// What a browser would keep for, or apply to, the whole origin. WWW-Authenticate is here because a
// password typed for one sandbox would be sent to all.
constexpr std::array<std::string_view, 13> kOriginFields = {"set-cookie",
                                                            "set-cookie2",
                                                            "service-worker-allowed",
                                                            "clear-site-data",
                                                            "www-authenticate",
                                                            "strict-transport-security",
                                                            "alt-svc",
                                                            "accept-ch",
                                                            "report-to",
                                                            "reporting-endpoints",
                                                            "nel",
                                                            "origin-agent-cluster",
                                                            "set-login"};

bool is_origin_field(std::string_view name) {
  return std::any_of(kOriginFields.begin(), kOriginFields.end(),
                     [name](std::string_view field) { return equal_ignoring_case(name, field); });
}

// Where the service sends the client: a path of its own becomes one below the prefix.
std::string below(std::string_view prefix, std::string_view location, std::string_view host) {
  const Target target = split_target(location);
  const bool to_itself = target.authority.empty() || equal_ignoring_case(target.authority, host);
  const std::string_view path = target.path_and_query;
  // "//name" and "/\name" name another host for a browser.
  const bool has_path =
      path.starts_with('/') && !path.starts_with("//") && !path.starts_with("/\\");
  if (!to_itself || !has_path) return std::string(location);
  return cat(prefix, path);
}

}  // namespace

std::optional<PathAddress> find_path_address(std::string_view path) {
  if (!path.starts_with(kPathRoot)) return {};
  const size_t id_end = std::min(path.find('/', kPathRoot.size()), path.size());
  const size_t port_begin = std::min(id_end + 1, path.size());
  const size_t port_end = std::min(path.find('/', port_begin), path.size());
  return PathAddress{.id = path.substr(kPathRoot.size(), id_end - kPathRoot.size()),
                     .port = path.substr(port_begin, port_end - port_begin),
                     .prefix = path.substr(0, port_end)};
}

std::optional<http::Response> refuse_shared(const http::RequestHead& request,
                                            std::string_view prefix) {
  const bool for_service_worker =
      request.headers.has("Service-Worker") ||
      equal_ignoring_case(trim(request.headers.get("Sec-Fetch-Dest").value_or("")),
                          "serviceworker");
  if (for_service_worker) {
    return make_plain_text(403, "Service workers are not available below /_sandbox/");
  }
  const Target target = split_target(request.target);
  if (target.path() != prefix) return {};
  http::Response response = make_plain_text(308, "");
  const std::string_view query = target.path_and_query.substr(prefix.size());
  response.headers.add("Location", cat(prefix, "/", query));
  return response;
}

void enter_shared(http::RequestHead& head, std::string_view prefix) {
  if (head.target.starts_with(prefix)) head.target.erase(0, prefix.size());
  if (!head.target.starts_with('/')) head.target.insert(0, 1, '/');
  head.headers.remove("Cookie");
  head.headers.set("X-Forwarded-Prefix", std::string(prefix));
}

void leave_shared(http::Headers& headers, std::string_view prefix, std::string_view host) {
  http::Headers kept;
  for (const auto& [name, value] : headers) {
    if (is_origin_field(name)) continue;
    const bool leads_on =
        equal_ignoring_case(name, "location") || equal_ignoring_case(name, "content-location");
    kept.add(name, leads_on ? below(prefix, value, host) : value);
  }
  headers = std::move(kept);
  add_shared_policy(headers);
}

void add_shared_policy(http::Headers& headers) {
  // Beside a policy of the service: a browser applies both.
  headers.add("Content-Security-Policy", std::string(kPolicy));
}

}  // namespace alcove::gateway

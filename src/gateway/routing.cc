// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/routing.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "base/strings.h"
#include "gateway/shared_origin.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

constexpr std::string_view kInvalidHost = "Invalid host";
constexpr std::string_view kInvalidId = "Invalid sandbox ID";
constexpr std::string_view kInvalidPort = "Invalid sandbox port";
constexpr std::string_view kMissingHeader = "missing header";
constexpr std::string_view kDigits = "0123456789";

// First path segments of the API's own routes. /health and /metrics are not here: with the
// headers they are the agent's, without them everything is the API's anyway.
constexpr std::array<std::string_view, 15> kApiRoots = {
    "sandboxes",     "v1",      "v2",      "v3",    "templates",
    "snapshots",     "volumes", "secrets", "teams", "api-keys",
    "access-tokens", "events",  "nodes",   "admin", "volumecontent"};

struct RoutingFields {
  std::string_view host;
  std::string_view id;
  std::string_view port;
  // A routing field was given twice with different values.
  bool contradictory_host = false;
  bool contradictory_header = false;
};

RoutingFields collect_fields(const http::RequestHead& request) {
  RoutingFields fields;
  const auto take = [](std::string_view& slot, bool& contradictory, std::string_view value) {
    value = trim(value);
    if (!slot.empty() && slot != value) contradictory = true;
    slot = value;
  };
  for (const auto& [name, value] : request.headers) {
    if (name.size() == 4 && equal_ignoring_case(name, "host")) {
      take(fields.host, fields.contradictory_host, value);
    } else if (name.size() == 14 && equal_ignoring_case(name, "e2b-sandbox-id")) {
      take(fields.id, fields.contradictory_header, value);
    } else if (name.size() == 16 && equal_ignoring_case(name, "e2b-sandbox-port")) {
      take(fields.port, fields.contradictory_header, value);
    }
  }
  return fields;
}

Refusal refuse(std::string_view text) { return {.status = 400, .text = std::string(text)}; }

// The host name alone: no port, no brackets' content (an address is no name), no final dot.
std::string_view host_name(std::string_view authority) {
  if (authority.starts_with('[')) return {};
  std::string_view name = authority.substr(0, authority.find(':'));
  if (name.ends_with('.')) name.remove_suffix(1);
  return name;
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of(kDigits) == std::string_view::npos;
}

std::optional<uint16_t> parse_port(std::string_view text) {
  if (!all_digits(text)) return {};
  const auto port = parse_number<uint16_t>(text);
  return port && *port != 0 ? port : std::nullopt;
}

// Our own ids: a label that holds one is meant for a sandbox, however broken the rest is.
bool looks_like_own_id(std::string_view text) {
  return text.size() == 21 && text.starts_with('i') && parse_sandbox_id(text).has_value();
}

// The id in "<port>-<id>" or "<port>-<id>-<suffix>".
std::string_view id_in_label(std::string_view label) {
  const size_t dash = label.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view id = label.substr(dash + 1);
  return id.substr(0, id.find('-'));
}

// A name in our own domain that is neither the API's nor a sandbox's. With the headers that name a
// sandbox it may be anything.
bool is_nobodys_host(std::string_view name, const RoutingOptions& options) {
  const size_t dot = name.find('.');
  return !options.domain.empty() && dot != std::string_view::npos &&
         name.substr(dot + 1) == options.domain && name.substr(0, dot) != "api";
}

// The rule for host names; nothing if the name is not one of a sandbox.
std::optional<Route> route_by_host(std::string_view name, const RoutingOptions& options) {
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos) {
    if (looks_like_own_id(id_in_label(name))) return refuse(kInvalidHost);
    return {};
  }
  const std::string_view label = name.substr(0, dot);
  const std::string_view rest = name.substr(dot + 1);
  const bool under_domain = !options.domain.empty() && rest == options.domain;

  if (label == "api" && (under_domain || options.domain.empty())) return ToApi{};

  const size_t dash = label.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view port_text = label.substr(0, dash);
  const std::string_view id_text = id_in_label(label);

  if (!all_digits(port_text)) {
    // "build-box.lan" is an ordinary machine name, unless it lies in our own domain.
    if (under_domain || looks_like_own_id(id_text)) return refuse(kInvalidHost);
    return {};
  }
  // "192-168-1-5.example.net" is an address spelt as a name: ids are never that short a number.
  if (!under_domain && all_digits(id_text) && id_text.size() <= 3) return {};

  auto id = parse_sandbox_id(id_text);
  if (!id) return refuse(kInvalidId);
  const auto port = parse_port(port_text);
  if (!port) return refuse(kInvalidHost);
  return ToSandbox{.id = std::move(id).value(), .port = *port, .prefix = {}};
}

bool is_api_path(std::string_view path) {
  const size_t start = path.find_first_not_of('/');
  if (start == std::string_view::npos) return false;
  const std::string_view segment = path.substr(start, path.find('/', start) - start);
  return std::find(kApiRoots.begin(), kApiRoots.end(), segment) != kApiRoots.end();
}

bool has_signature(std::string_view query) {
  return query.starts_with("signature=") || query.find("&signature=") != std::string_view::npos;
}

// For paths that no host name and no header claims.
Route route_by_path(const Target& target) {
  const std::string_view path = target.path();
  if (path == "/files" && has_signature(target.query())) return ToFileUrl{};
  const auto address = find_path_address(path);
  if (!address) return ToApi{};
  auto id = parse_sandbox_id(address->id);
  if (!id) return refuse(kInvalidId);
  const auto port = parse_port(address->port);
  if (!port) return refuse(kInvalidPort);
  return ToSandbox{
      .id = std::move(id).value(), .port = *port, .prefix = std::string(address->prefix)};
}

Route route_by_headers(const RoutingFields& fields, const Target& target) {
  if (fields.id.empty() && fields.port.empty()) return route_by_path(target);
  const std::string_view path = target.path();
  const bool both = !fields.id.empty() && !fields.port.empty();
  const auto port = parse_port(fields.port);
  if ((!both || port.value_or(kAgentPort) == kAgentPort) && is_api_path(path)) return ToApi{};
  if (!both) return refuse(kMissingHeader);
  if (fields.contradictory_header) return refuse("contradictory headers");
  if (!port) return refuse(kInvalidPort);
  auto id = parse_sandbox_id(fields.id);
  if (!id) return refuse(kInvalidId);
  return ToSandbox{.id = std::move(id).value(), .port = *port, .prefix = {}};
}

}  // namespace

Route route(const http::RequestHead& request, const RoutingOptions& options) {
  if (request.method == "CONNECT") return refuse("CONNECT is not supported");
  RoutingFields fields = collect_fields(request);
  if (fields.contradictory_host) return refuse(kInvalidHost);

  const Target target = split_target(request.target);
  if (!target.authority.empty()) fields.host = target.authority;
  // User information before a name is a way to make a host look like another one.
  if (fields.host.find('@') != std::string_view::npos) return refuse(kInvalidHost);

  const std::string_view raw_name = host_name(fields.host);
  const bool has_upper =
      std::any_of(raw_name.begin(), raw_name.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
  const std::string lowered = has_upper ? to_lower(raw_name) : std::string();
  const std::string_view name = has_upper ? lowered : raw_name;
  if (auto by_host = route_by_host(name, options)) {
    // The API's own name leads to what shares its origin too, but not to signed URLs.
    const bool to_api = std::holds_alternative<ToApi>(*by_host);
    if (to_api && find_path_address(target.path())) return route_by_path(target);
    return *std::move(by_host);
  }
  Route by_headers = route_by_headers(fields, target);
  const bool named = !fields.id.empty() || !fields.port.empty();
  if (!named && std::holds_alternative<ToApi>(by_headers) && is_nobodys_host(name, options)) {
    return refuse(kInvalidHost);
  }
  return by_headers;
}

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/network_body.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <boost/json/serialize.hpp>
#include <boost/json/value.hpp>

#include "api/json_view.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

namespace json = boost::json;

ApiResult<void> refuse_unbuilt(const ObjectView& fields) {
  for (const char* name : {"allowOut", "denyOut", "dnsServers"}) {
    ALCOVE_API_TRY_ASSIGN(const auto list, fields.string_list(name));
    if (list && !list->empty()) return refuse(not_available(cat("network.", name)));
  }
  ALCOVE_API_TRY_ASSIGN(const auto* rules, fields.object("rules"));
  if (rules != nullptr && !rules->empty()) return refuse(not_available("network.rules"));
  ALCOVE_API_TRY_ASSIGN(const auto* proxy, fields.object("egressProxy"));
  if (proxy != nullptr) return refuse(403, "network.egressProxy is not enabled on this server.");
  return {};
}

// Ports of services that speak TLS; not the agent's, which does not.
ApiResult<void> check_https_ports(const ObjectView& fields) {
  constexpr size_t kMost = 100;
  constexpr int64_t kAgentPort = 49983;
  ALCOVE_API_TRY_ASSIGN(const auto* ports, fields.array("httpsPorts"));
  if (ports == nullptr) return {};
  const bool valid = ports->size() <= kMost &&
                     std::all_of(ports->begin(), ports->end(), [](const json::value& port) {
                       return port.is_int64() && port.get_int64() > 0 &&
                              port.get_int64() <= UINT16_MAX && port.get_int64() != kAgentPort;
                     });
  if (valid) return {};
  return refuse(400,
                "network.httpsPorts must be a list of at most 100 ports from 1 to 65535; 49983 is "
                "not allowed");
}

bool is_host_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_';
}

// A host name, IPv4 or [IPv6] address, with or without a port; "${PORT}" counts as a number.
// Strict because services get it as their Host.
bool is_host_mask(std::string_view mask) {
  constexpr size_t kLongest = 255;
  constexpr std::string_view kVariable = "${PORT}";
  std::string plain(mask);
  for (size_t at; (at = plain.find(kVariable)) != std::string::npos;) {
    plain.replace(at, kVariable.size(), "1");
  }
  if (mask.size() > kLongest) return false;
  std::string_view rest = plain;
  if (rest.starts_with('[')) {
    const size_t end = rest.find(']');
    if (end == std::string_view::npos || end < 3) return false;
    if (rest.substr(1, end - 1).find_first_not_of("0123456789abcdefABCDEF:.") !=
        std::string_view::npos) {
      return false;
    }
    rest.remove_prefix(end + 1);
  } else {
    const size_t end = std::min(rest.find(':'), rest.size());
    const std::string_view name = rest.substr(0, end);
    if (name.empty() || !std::all_of(name.begin(), name.end(), is_host_char)) return false;
    rest.remove_prefix(end);
  }
  if (rest.empty()) return true;
  const auto port = parse_number<uint16_t>(rest.substr(1));
  return rest.front() == ':' && port && *port != 0;
}

}  // namespace

ApiResult<NetworkBody> parse_network(const json::object& network) {
  const ObjectView fields(network, "network.");
  ALCOVE_API_TRY(refuse_unbuilt(fields));
  ALCOVE_API_TRY(check_https_ports(fields));
  ALCOVE_API_TRY_ASSIGN(const auto mask, fields.string("maskRequestHost"));
  if (mask && !is_host_mask(*mask)) {
    return refuse(400,
                  "network.maskRequestHost must be a host name or address, with or without a port");
  }
  ALCOVE_API_TRY_ASSIGN(const auto allow_public, fields.boolean("allowPublicTraffic"));

  json::object shown;
  for (const char* name : {"allowOut", "denyOut", "dnsServers", "httpsPorts", "rules",
                           "allowPublicTraffic", "maskRequestHost"}) {
    // Null would make the Python clients fail.
    const json::value* value = network.if_contains(name);
    if (value != nullptr && !value->is_null()) shown[name] = *value;
  }
  return NetworkBody{.allow_public_traffic = allow_public.value_or(true),
                     .json = json::serialize(shown)};
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/network_body.h"

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
  ALCOVE_API_TRY_ASSIGN(const auto* ports, fields.array("httpsPorts"));
  if (ports != nullptr && !ports->empty()) return refuse(not_available("network.httpsPorts"));
  ALCOVE_API_TRY_ASSIGN(const auto* rules, fields.object("rules"));
  if (rules != nullptr && !rules->empty()) return refuse(not_available("network.rules"));
  ALCOVE_API_TRY_ASSIGN(const auto mask, fields.string("maskRequestHost"));
  if (mask) return refuse(not_available("network.maskRequestHost"));
  ALCOVE_API_TRY_ASSIGN(const auto* proxy, fields.object("egressProxy"));
  if (proxy != nullptr) return refuse(403, "network.egressProxy is not enabled on this server.");
  return {};
}

}  // namespace

ApiResult<NetworkBody> parse_network(const json::object& network) {
  const ObjectView fields(network, "network.");
  ALCOVE_API_TRY(refuse_unbuilt(fields));
  ALCOVE_API_TRY_ASSIGN(const auto allow_public, fields.boolean("allowPublicTraffic"));

  json::object shown;
  for (const char* name :
       {"allowOut", "denyOut", "dnsServers", "httpsPorts", "rules", "allowPublicTraffic"}) {
    // Null would make the Python clients fail.
    const json::value* value = network.if_contains(name);
    if (value != nullptr && !value->is_null()) shown[name] = *value;
  }
  return NetworkBody{.allow_public_traffic = allow_public.value_or(true),
                     .json = json::serialize(shown)};
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/ingress.h"

#include <boost/json/parse.hpp>

#include "gateway/routing.h"

namespace alcove::gateway {
namespace {

constexpr std::string_view kPortVariable = "${PORT}";

}  // namespace

Ingress parse_ingress(std::string_view network_json) {
  Ingress ingress;
  if (network_json.empty()) return ingress;
  boost::system::error_code error;
  const boost::json::value network = boost::json::parse(network_json, error);
  if (error || !network.is_object()) return ingress;
  const boost::json::value* mask = network.get_object().if_contains("maskRequestHost");
  if (mask != nullptr && mask->is_string()) ingress.mask_host = mask->get_string();
  return ingress;
}

void mask_host(http::RequestHead& head, const Ingress& ingress, uint16_t port) {
  if (ingress.mask_host.empty() || port == kAgentPort) return;
  std::string host = ingress.mask_host;
  for (size_t at = 0; (at = host.find(kPortVariable, at)) != std::string::npos;) {
    host.replace(at, kPortVariable.size(), std::to_string(port));
  }
  head.headers.set("X-Forwarded-Host", std::string(head.headers.get("Host").value_or("")));
  head.headers.set("Host", std::move(host));
}

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/ingress.h"

#include <algorithm>
#include <cctype>

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
  const boost::json::value* ports = network.get_object().if_contains("httpsPorts");
  if (ports != nullptr && ports->is_array()) {
    for (const boost::json::value& port : ports->get_array()) {
      if (port.is_int64() && port.get_int64() > 0 && port.get_int64() <= UINT16_MAX) {
        ingress.https_ports.push_back(static_cast<uint16_t>(port.get_int64()));
      }
    }
    std::sort(ingress.https_ports.begin(), ingress.https_ports.end());
  }
  return ingress;
}

bool Ingress::speaks_tls(uint16_t port) const {
  return port != kAgentPort && std::binary_search(https_ports.begin(), https_ports.end(), port);
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

std::string server_name(std::string_view host) {
  constexpr size_t kLongestName = 253;
  const std::string_view name = host.substr(0, host.find(':'));
  const bool valid = !name.empty() && name.size() <= kLongestName &&
                     std::all_of(name.begin(), name.end(), [](unsigned char c) {
                       return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
                     });
  // No top-level name ends with a digit, but every IPv4 address does.
  if (!valid || std::isdigit(static_cast<unsigned char>(name.back())) != 0) return {};
  return std::string(name);
}

}  // namespace alcove::gateway

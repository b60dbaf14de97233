// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/gate.h"

namespace alcove::relay {
namespace {

using network::DialMark;
using Way = sys::RouteLookup::Way;

constexpr uint16_t kDnsPort = 53;

// As if there were no way to it: what is not allowed is not told apart.
Passage refuse() {
  return {.refusal = DialMark::kUnreachable, .targets = {}, .name_server = false};
}

}  // namespace

Way Gate::way_to(const network::IpAddress& address) {
  return address.is_v4() ? routes_.find(address.to_in_addr()) : routes_.find(address.to_in6_addr());
}

Passage Gate::judge(const network::EgressPolicy& policy, const network::Endpoint& to) {
  if (policy.reach == network::EgressPolicy::Reach::kNone) return refuse();
  static const network::IpAddress name_server =
      *network::IpAddress::parse(network::kGuestNameServer);
  if (to.port == kDnsPort && to.address == name_server) {
    Passage passage{.refusal = DialMark::kNone, .targets = {}, .name_server = true};
    for (const auto& server : resolvers_.servers()) passage.targets.push_back({server, kDnsPort});
    if (!passage.targets.empty()) return passage;
  }
  if (!network::is_public(to.address)) return refuse();
  if (way_to(to.address) != Way::kOut) return refuse();
  // An address in an address: what it leads to may be this host as well.
  const auto reached = network::reached_by(to.address);
  if (!reached || (*reached != to.address && way_to(*reached) == Way::kOwn)) return refuse();
  return {.refusal = DialMark::kNone, .targets = {to}, .name_server = false};
}

}  // namespace alcove::relay

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string_view>

#include "network/ip_address.h"

namespace alcove::network {

// What a sandbox may reach outside of itself.
struct EgressPolicy {
  enum class Reach {
    kInternet,  // public addresses, and the host's name servers
    kNone,
  };
  Reach reach = Reach::kInternet;

  friend bool operator==(const EgressPolicy&, const EgressPolicy&) = default;
};

// As kept in records: "internet", "none".
std::string_view to_text(const EgressPolicy& policy);
std::optional<EgressPolicy> parse_egress_policy(std::string_view text);

// What a packet to this address really reaches: an address that carries another one (IPv4 in IPv6,
// by mapping or by a translator) is judged by that one. Nothing for forms that nobody should use.
std::optional<IpAddress> reached_by(const IpAddress& address);

// Whether an address belongs to the public internet: not this host, not a private, link-local or
// shared network, no multicast, no form that could hide one of these. The host's own public
// addresses are for the caller to find out.
bool is_public(const IpAddress& address);

}  // namespace alcove::network

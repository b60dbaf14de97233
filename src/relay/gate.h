// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <vector>

#include "network/egress_policy.h"
#include "network/guest_network.h"
#include "network/ip_address.h"
#include "relay/resolvers.h"
#include "sys/route_lookup.h"

namespace alcove::relay {

// Where a sandbox's connection or datagram goes.
struct Passage {
  // kNone: it may pass. Else why not; there are no targets then.
  network::DialMark refusal = network::DialMark::kNone;
  // To be tried in order. More than one only for a question to a name server.
  std::vector<network::Endpoint> targets;
  bool name_server = false;
};

// The one place that decides what may leave. Asked for every new connection and flow, right before
// the host's socket is made.
class Gate {
 public:
  Gate(sys::RouteLookup routes, Resolvers& resolvers)
      : routes_(std::move(routes)), resolvers_(resolvers) {}

  Passage judge(const network::EgressPolicy& policy, const network::Endpoint& to);

 private:
  sys::RouteLookup::Way way_to(const network::IpAddress& address);

  sys::RouteLookup routes_;
  Resolvers& resolvers_;
};

}  // namespace alcove::relay

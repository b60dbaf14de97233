// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <vector>

#include "network/guest_network.h"

namespace alcove::network {

// The rules of a sandbox's network namespace, best first: kernels differ in how they queue a packet
// for a program, and a batch that one does not know is refused as a whole.
//
// All that leaves comes to the relay's sockets (TPROXY); what is neither TCP nor UDP, or finds no
// relay, is refused. New TCP connections wait for the relay's verdict (NFQUEUE).
std::vector<RuleSet> make_rule_sets();

}  // namespace alcove::network

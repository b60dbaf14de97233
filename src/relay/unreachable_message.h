// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "network/ip_address.h"

namespace alcove::relay {

// How a program is told that its datagrams do not arrive.
enum class Unreachable {
  kPortClosed,  // ECONNREFUSED
  kProhibited,  // EHOSTUNREACH (EACCES for IPv6), as from the rules
};

// The ICMP message about a datagram of this flow, without its IP header. For IPv6 the kernel adds
// the checksum.
std::string make_unreachable_message(const network::FlowKey& flow, Unreachable why);

}  // namespace alcove::relay

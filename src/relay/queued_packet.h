// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "network/ip_address.h"

namespace alcove::relay {

// A packet that waits in a sandbox's queue. A sandbox may put anything there.
struct QueuedPacket {
  uint32_t id = 0;
  // Set if it is the first packet of a TCP connection.
  std::optional<network::FlowKey> connection;
};

// Reads one netlink message of the queue; nothing if it is no packet.
std::optional<QueuedPacket> parse_queued_packet(std::string_view message);

// The ends of the connection that this IP packet asks for.
std::optional<network::FlowKey> parse_connection_request(std::string_view packet);

}  // namespace alcove::relay

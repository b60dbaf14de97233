// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>

#include "base/result.h"
#include "base/unique_fd.h"
#include "network/guest_network.h"
#include "relay/queued_packet.h"

namespace alcove::relay {

// Packets that a queue holds before the kernel drops new ones.
inline constexpr uint32_t kQueueLength = 1024;

// Binds the queue of the calling thread's network namespace; the socket is non-blocking.
Result<UniqueFd> open_packet_queue();

// The next message. Nothing when there is none now; a message that is no packet has no value
// inside.
std::optional<std::optional<QueuedPacket>> receive_packet(int queue);

// Lets a packet go on its way with this mark, or takes it away as if it had been lost.
void pass_packet(int queue, uint32_t id, network::DialMark mark);
void drop_packet(int queue, uint32_t id);

}  // namespace alcove::relay

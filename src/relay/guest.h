// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "network/egress_policy.h"
#include "relay/carrier.h"
#include "relay/gate.h"
#include "relay/guest_sockets.h"
#include "relay/rate_limit.h"
#include "relay/resolvers.h"
#include "relay/socket_count.h"

namespace alcove::relay {

// What all sandboxes share. Lives as long as the loop.
struct Services {
  boost::asio::any_io_executor executor;
  Resolvers& resolvers;
  Gate gate;
  PipePool pipes;
  SocketCount sockets;
  // For what is received and sent on within one step.
  std::array<char, 65536> buffer;
};

// A sandbox as the relay knows it. Shared with the tasks that work for it.
struct Guest {
  Services& services;
  const network::EgressPolicy policy;
  const GuestNetwork network;
  const std::shared_ptr<SocketCount> sockets;
  PipeCount pipes;
  RateLimit rate;
};

}  // namespace alcove::relay

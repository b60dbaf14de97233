// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>

#include "net/fd_wait.h"
#include "network/guest_network.h"
#include "relay/guest.h"

namespace alcove::relay {

// A connection from the host, or why there is none.
struct DialOutcome {
  std::shared_ptr<net::FdWait> socket;
  // How the program is told. kNone without a socket: not at all, nobody answered.
  network::DialMark refusal = network::DialMark::kNone;
};

// Lets somebody else give up a dial.
struct DialControl {
  std::shared_ptr<net::FdWait> under_way;
  bool canceled = false;

  void cancel() {
    canceled = true;
    if (under_way) under_way->close();
  }
};

// Connects to the targets in turn until one answers.
Task<DialOutcome> dial(Services& services, Passage passage, std::shared_ptr<DialControl> control);

}  // namespace alcove::relay

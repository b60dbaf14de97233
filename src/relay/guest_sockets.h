// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"
#include "network/ip_address.h"
#include "relay/unreachable_message.h"

namespace alcove::relay {

// Sockets inside a sandbox's network namespace. The relay has one thread, which visits the
// namespace and goes back to `home`.
class GuestNetwork {
 public:
  GuestNetwork(UniqueFd netns, int home) : netns_(std::move(netns)), home_(home) {}

  // Takes connections to any address; the accepted socket's own address is where the program
  // wanted to go.
  Result<UniqueFd> open_tcp_listener() const;
  // Gets the first datagram of each flow, with its original destination.
  Result<UniqueFd> open_udp_listener() const;
  // Speaks as `flow.to` with `flow.from`.
  Result<UniqueFd> open_udp_flow(const network::FlowKey& flow) const;
  Result<UniqueFd> open_queue() const;
  // Tells the program that its datagrams do not arrive, as the destination would.
  void refuse_datagrams(const network::FlowKey& flow, Unreachable why) const;

  // Whether this is the same namespace.
  bool is(int netns) const;

 private:
  template <typename Open>
  Result<UniqueFd> inside(Open open) const;

  UniqueFd netns_;
  int home_;
};

}  // namespace alcove::relay

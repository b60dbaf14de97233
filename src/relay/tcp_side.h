// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <unordered_map>
#include <unordered_set>

#include <boost/asio/steady_timer.hpp>

#include "net/fd_wait.h"
#include "relay/connection.h"
#include "relay/dial.h"
#include "relay/guest.h"
#include "relay/packet_queue.h"

namespace alcove::relay {

// TCP connections of one sandbox. The first packet of each waits in the sandbox's queue while the
// host dials: a program's connect() succeeds, fails or waits as it would without the relay. A
// connection that comes without such a packet (a kernel without queues, rules that the sandbox
// changed) is dialled when it is accepted.
class TcpSide : public std::enable_shared_from_this<TcpSide> {
 public:
  // Dials under way, fewer than the queue holds: a flood to addresses that do not answer must not
  // fill the queue. The oldest is given up for a new one.
  static constexpr size_t kMostDials = 256;
  static_assert(kMostDials < kQueueLength);

  explicit TcpSide(std::shared_ptr<Guest> guest);

  // Opens what it needs inside and begins to work.
  Result<void> start();
  // Ends everything, connections by reset.
  void close();

 private:
  struct PendingDial {
    network::FlowKey key;
    uint32_t packet = 0;
    std::shared_ptr<DialControl> control = std::make_shared<DialControl>();
  };
  using PendingList = std::list<PendingDial>;
  struct Ready {
    std::shared_ptr<net::FdWait> socket;
    SocketLease lease;
    Connection::Traffic traffic;
    std::chrono::steady_clock::time_point since;
  };

  Task<void> answer_queue();
  void handle(const QueuedPacket& packet);
  void give_up(PendingList::iterator dial);
  Task<void> dial_first(PendingList::iterator pending, Passage passage, SocketLease lease);
  void keep_ready(const network::FlowKey& key, Ready ready);
  void drop_stale();

  Task<void> accept_connections();
  // False if the listener is of no use any more.
  bool accept_some();
  void take(UniqueFd socket, const network::FlowKey& key);
  Task<void> dial_late(UniqueFd socket, network::FlowKey key);
  // Gives a late dial up when the program has.
  Task<void> watch_late(std::shared_ptr<net::FdWait> inner, std::shared_ptr<DialControl> control);

  const std::shared_ptr<Guest> guest_;
  std::shared_ptr<net::FdWait> listener_;
  std::shared_ptr<net::FdWait> queue_;
  bool closed_ = false;
  bool out_of_descriptors_ = false;

  PendingList pending_;  // oldest first
  std::unordered_map<network::FlowKey, PendingList::iterator> pending_by_key_;
  std::unordered_set<std::shared_ptr<DialControl>> late_;
  // Dialled, and the packet let go; the sandbox's end comes out of the listener in a moment.
  std::unordered_map<network::FlowKey, Ready> ready_;
  std::deque<std::pair<std::chrono::steady_clock::time_point, network::FlowKey>> ready_order_;
  boost::asio::steady_timer stale_timer_;
  const std::shared_ptr<Connection::Set> connections_ = std::make_shared<Connection::Set>();
};

}  // namespace alcove::relay

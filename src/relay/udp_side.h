// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <boost/asio/steady_timer.hpp>

#include "net/fd_wait.h"
#include "relay/guest.h"

namespace alcove::relay {

// Datagrams of one sandbox. Each pair of ends is a flow with two sockets: one inside that speaks
// as the destination, one of the host (to a name server one for each that was asked). Flows end
// when nobody uses them for a while, or when there are too many, the longest unused first.
class UdpSide : public std::enable_shared_from_this<UdpSide> {
 public:
  static constexpr size_t kMostFlows = 256;

  explicit UdpSide(std::shared_ptr<Guest> guest);

  Result<void> start();
  void close();

 private:
  struct Question {
    uint16_t id;
    std::string text;  // empty: too large to keep
  };
  struct Flow {
    Flow(network::FlowKey ends, SocketLease taken) : key(ends), lease(std::move(taken)) {}

    const network::FlowKey key;
    const SocketLease lease;
    std::shared_ptr<net::FdWait> inner;
    // Where answers come from; what the program sends goes to the last one.
    std::vector<std::shared_ptr<net::FdWait>> outers;
    std::chrono::steady_clock::time_point used;
    std::list<Flow*>::iterator place;
    bool closed = false;

    // Of a flow to the name server: who can be asked, and what nobody has answered yet.
    std::deque<network::Endpoint> servers;
    std::deque<Question> unanswered;
  };
  using FlowPtr = std::shared_ptr<Flow>;

  Task<void> receive_first_datagrams();
  // False if the listener is of no use any more.
  bool receive_some();
  void handle(const network::FlowKey& key, std::string_view datagram);
  FlowPtr open(const network::FlowKey& key);
  void end(Flow& flow);
  // Tells the program; not more often than a real network would.
  void refuse(const network::FlowKey& key, Unreachable why);
  void touch(Flow& flow);
  void expire();

  Task<void> carry_out(FlowPtr flow);
  Task<void> carry_in(FlowPtr flow, std::shared_ptr<net::FdWait> outer);
  void add_outer(const FlowPtr& flow, UniqueFd socket);
  // This one has failed. The flow goes on if there is another.
  void drop_outer(const FlowPtr& flow, const std::shared_ptr<net::FdWait>& outer, int error);
  void send_out(Flow& flow, std::string_view datagram);
  // False if it may not go to a name server.
  bool take_question(Flow& flow, std::string_view question);
  void keep_question(Flow& flow, std::string_view question);
  // Those that have this answer; a program may have asked twice.
  void forget_answered(Flow& flow, std::string_view answer);
  void forget_oldest_question(Flow& flow);
  // Asks the next server what the last one did not answer; false if there is none.
  bool ask_next_server(const FlowPtr& flow);

  const std::shared_ptr<Guest> guest_;
  std::shared_ptr<net::FdWait> listener_;
  bool closed_ = false;
  std::unordered_map<network::FlowKey, FlowPtr> flows_;
  std::list<Flow*> by_use_;  // longest unused first
  size_t question_bytes_ = 0;
  boost::asio::steady_timer expiry_;
  std::chrono::steady_clock::time_point refusals_since_;
  int refusals_ = 0;
};

}  // namespace alcove::relay

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/fd_wait.h"
#include "relay/control_messages.h"
#include "relay/guest.h"
#include "relay/tcp_side.h"
#include "relay/udp_side.h"
#include "sys/message.h"

namespace alcove::relay {

// The relay: what servers ask for, and the sandboxes that are open. Of one loop with one thread.
// It dials from the network namespace in which it was created. Tasks of the loop refer to it: it
// may go before it serves, or with the process.
class Relay {
 public:
  struct Options {
    // Descriptors that this process may have.
    size_t descriptors = 1024;
  };

  static Result<std::unique_ptr<Relay>> create(boost::asio::io_context& loop, Options options);

  // Answers connections to this SOCK_SEQPACKET socket. The loop stops when one asks for it.
  void serve(UniqueFd listener);

 private:
  struct Sandbox {
    std::shared_ptr<Guest> guest;
    std::shared_ptr<TcpSide> tcp;
    std::shared_ptr<UdpSide> udp;
  };

  Relay(boost::asio::io_context& loop, Options options, UniqueFd home, sys::RouteLookup routes);

  Task<void> accept(std::shared_ptr<net::FdWait> listener);
  Task<void> answer_peer(std::shared_ptr<net::FdWait> peer);
  Answer handle(const Hello& hello, std::vector<UniqueFd>& fds);
  Answer handle(const Open& open, std::vector<UniqueFd>& fds);
  Answer handle(const Close& close, std::vector<UniqueFd>& fds);
  Answer handle(const List& list, std::vector<UniqueFd>& fds);
  Answer handle(const Stop& stop, std::vector<UniqueFd>& fds);
  // Around everything that takes descriptors from a server; no wait in between.
  void free_spares() { spares_ = {}; }
  // False if there are too few.
  bool keep_spares();
  Result<void> open_sandbox(const Open& open, UniqueFd netns);
  void close_sandbox(const std::string& id);

  boost::asio::io_context& loop_;
  const Options options_;
  const UniqueFd home_;
  Resolvers resolvers_;
  Services services_;
  std::map<std::string, Sandbox> sandboxes_;
  // Held free for what servers send: with no descriptors left, sandboxes wait, servers do not.
  // A connection, or an answer and a network.
  std::array<UniqueFd, 3> spares_;
};

}  // namespace alcove::relay

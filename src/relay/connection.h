// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <unordered_set>

#include "net/fd_wait.h"
#include "relay/guest.h"
#include "relay/socket_count.h"

namespace alcove::relay {

// A TCP connection of a sandbox and the host's connection that belongs to it. Copies both ways
// until both have ended; an end or a reset of one side becomes one of the other. Kept alive by its
// own tasks.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  using Set = std::unordered_set<Connection*>;
  enum class Traffic {
    kAny,
    kQuestions,  // to a name server: anything else ends it
  };

  // Puts itself into `all` until it ends; the set is kept alive.
  Connection(std::shared_ptr<Guest> guest, std::shared_ptr<Set> all, SocketLease lease,
             std::shared_ptr<net::FdWait> inner, std::shared_ptr<net::FdWait> outer,
             Traffic traffic);
  ~Connection();

  void start();
  // Resets both sides.
  void reset();

 private:
  Task<void> copy(std::shared_ptr<net::FdWait> from, std::shared_ptr<net::FdWait> to);
  // From inside to outside.
  Task<void> copy_questions();

  const std::shared_ptr<Guest> guest_;
  const std::shared_ptr<Set> all_;
  SocketLease lease_;
  const std::shared_ptr<net::FdWait> inner_;
  const std::shared_ptr<net::FdWait> outer_;
  const Traffic traffic_;
};

// Ends a TCP socket with a reset instead of an orderly end.
void reset_socket(net::FdWait& socket);

}  // namespace alcove::relay

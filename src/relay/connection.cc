// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "net/event_loops.h"

namespace alcove::relay {
namespace {

using Direction = net::FdWait::Direction;

void set_up(int fd) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer that is gone without a word is found out some time.
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

}  // namespace

void reset_socket(net::FdWait& socket) {
  if (socket.closed()) return;
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket.close();
}

Connection::Connection(std::shared_ptr<Guest> guest, std::shared_ptr<Set> all, SocketLease lease,
                       std::shared_ptr<net::FdWait> inner, std::shared_ptr<net::FdWait> outer)
    : guest_(std::move(guest)),
      all_(std::move(all)),
      lease_(std::move(lease)),
      inner_(std::move(inner)),
      outer_(std::move(outer)) {
  all_->insert(this);
}

Connection::~Connection() { all_->erase(this); }

void Connection::start() {
  set_up(inner_->fd());
  set_up(outer_->fd());
  const auto& executor = guest_->services.executor;
  net::spawn(executor, copy(inner_, outer_));
  net::spawn(executor, copy(outer_, inner_));
}

void Connection::reset() {
  reset_socket(*inner_);
  reset_socket(*outer_);
}

Task<void> Connection::copy(std::shared_ptr<net::FdWait> from, std::shared_ptr<net::FdWait> to) {
  const auto self = shared_from_this();
  while (co_await from->wait(Direction::kRead)) {
    Carrier carrier(guest_->services.pipes, guest_->pipes);
    for (;;) {
      const ssize_t got = carrier.fill(from->fd());
      if (got == 0) {
        (void)::shutdown(to->fd(), SHUT_WR);
        co_return;
      }
      if (got < 0 && errno == EAGAIN) break;
      if (got < 0) co_return reset();
      while (!carrier.empty()) {
        if (carrier.drain(to->fd()) >= 0) continue;
        if (errno != EAGAIN) co_return reset();
        if (!co_await to->wait(Direction::kWrite)) co_return reset();
      }
      if (from->wants_turn()) co_await from->give_turn();
      if (from->closed() || to->closed()) co_return;
    }
  }
  // The wait ends without data only when the connection was reset, or by a fault of the kernel.
  reset();
}

}  // namespace alcove::relay

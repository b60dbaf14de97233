// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include "net/event_loops.h"
#include "relay/dns_question.h"

namespace alcove::relay {
namespace {

using Direction = net::FdWait::Direction;

// Questions are read so much at a time; each connection keeps it.
constexpr size_t kQuestionBytes = 4096;

// So many connections of a sandbox get the buffers that the kernel finds right: megabytes for one
// that is fast and far. Those that come while there are more get a share of a budget. Nobody
// accounts the kernel's memory to the sandbox, and the host has one bound for all of its TCP: 2,048
// connections whose ends read nothing any more hold 1 GB instead of 20.
constexpr size_t kFreeConnections = 64;
constexpr size_t kBufferBudget = 16 << 20;
constexpr size_t kSmallestBuffer = 32 << 10;

void bound_buffers(int fd, size_t connections) {
  const int size = static_cast<int>(std::max(kBufferBudget / connections, kSmallestBuffer));
  (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

void set_up(int fd, size_t connections) {
  const int on = 1;
  (void)::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  // A peer that is gone without a word is found out some time.
  (void)::setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (connections > kFreeConnections) bound_buffers(fd, connections);
}

}  // namespace

void reset_socket(net::FdWait& socket) {
  if (socket.closed()) return;
  const linger now{.l_onoff = 1, .l_linger = 0};
  (void)::setsockopt(socket.fd(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  socket.close();
}

Connection::Connection(std::shared_ptr<Guest> guest, std::shared_ptr<Set> all, SocketLease lease,
                       std::shared_ptr<net::FdWait> inner, std::shared_ptr<net::FdWait> outer,
                       Traffic traffic)
    : guest_(std::move(guest)),
      all_(std::move(all)),
      lease_(std::move(lease)),
      inner_(std::move(inner)),
      outer_(std::move(outer)),
      traffic_(traffic) {
  all_->insert(this);
}

Connection::~Connection() { all_->erase(this); }

void Connection::start() {
  set_up(inner_->fd(), all_->size());
  set_up(outer_->fd(), all_->size());
  const auto& executor = guest_->services.executor;
  net::spawn(executor, traffic_ == Traffic::kAny ? copy(inner_, outer_) : copy_questions());
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

Task<void> Connection::copy_questions() {
  const auto self = shared_from_this();
  QuestionStream questions;
  std::string passed;
  while (co_await inner_->wait(Direction::kRead)) {
    for (;;) {
      const ssize_t got =
          ::recv(inner_->fd(), guest_->services.buffer.data(), kQuestionBytes, MSG_DONTWAIT);
      if (got == 0) {
        (void)::shutdown(outer_->fd(), SHUT_WR);
        co_return;
      }
      if (got < 0 && errno == EINTR) continue;
      if (got < 0 && errno == EAGAIN) break;
      if (got < 0) co_return reset();
      passed.clear();
      const std::string_view bytes(guest_->services.buffer.data(), static_cast<size_t>(got));
      if (!questions.take(bytes, passed)) co_return reset();
      for (size_t sent = 0; sent < passed.size();) {
        const ssize_t put = ::send(outer_->fd(), passed.data() + sent, passed.size() - sent,
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
        if (put >= 0) {
          sent += static_cast<size_t>(put);
        } else if (errno == EAGAIN) {
          if (!co_await outer_->wait(Direction::kWrite)) co_return reset();
        } else if (errno != EINTR) {
          co_return reset();
        }
      }
      if (inner_->wants_turn()) co_await inner_->give_turn();
      if (inner_->closed() || outer_->closed()) co_return;
    }
  }
  reset();
}

}  // namespace alcove::relay

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/tcp_side.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <optional>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"

namespace alcove::relay {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Direction = net::FdWait::Direction;
using network::DialMark;

// Work for one sandbox before others get a turn.
constexpr int kBatch = 64;
constexpr auto kReadyFor = 5s;
constexpr auto kFirstPause = 100ms;
constexpr auto kLongestPause = 5s;
constexpr auto kLateCheck = 500ms;
constexpr auto kHalfClosedPatience = 10s;

Connection::Traffic traffic_of(const Passage& passage) {
  return passage.name_server ? Connection::Traffic::kQuestions : Connection::Traffic::kAny;
}

}  // namespace

TcpSide::TcpSide(std::shared_ptr<Guest> guest)
    : guest_(std::move(guest)), stale_timer_(guest_->services.executor) {}

Result<void> TcpSide::start() {
  const auto& executor = guest_->services.executor;
  // The sandbox owns its network and may have taken the queue: then it is served without.
  if (auto queue = guest_->network.open_queue()) {
    queue_ = std::make_shared<net::FdWait>(executor, std::move(*queue));
    net::spawn(executor, answer_queue());
  } else if (queue.error().code() == Code::kResourceExhausted) {
    // Not the sandbox's doing, and without the queue nothing would ever leave.
    return fail(std::move(queue).error());
  } else {
    log_debug(queue.error().message());
  }
  // Without a listener the rules refuse everything at once.
  if (guest_->policy.reach == network::EgressPolicy::Reach::kNone) return {};
  ALCOVE_TRY_ASSIGN(UniqueFd listener, guest_->network.open_tcp_listener());
  listener_ = std::make_shared<net::FdWait>(executor, std::move(listener));
  net::spawn(executor, accept_connections());
  return {};
}

void TcpSide::close() {
  closed_ = true;
  if (listener_) listener_->close();
  for (PendingDial& dial : pending_) dial.control->cancel();
  for (const auto& dial : late_) dial->cancel();
  if (queue_) queue_->close();
  ready_.clear();
  ready_order_.clear();
  stale_timer_.cancel();
  for (Connection* connection : Connection::Set(*connections_)) connection->reset();
}

Task<void> TcpSide::answer_queue() {
  const auto self = shared_from_this();
  while (co_await queue_->wait(Direction::kRead)) {
    for (int i = 0; i < kBatch; ++i) {
      const auto message = receive_packet(queue_->fd());
      if (!message) break;
      if (*message) handle(**message);
    }
  }
}

void TcpSide::handle(const QueuedPacket& packet) {
  const auto pass = [&](DialMark mark) { pass_packet(queue_->fd(), packet.id, mark); };
  // What is no first packet is judged by the rules, and by us when it is accepted.
  if (!packet.connection) return pass(DialMark::kNone);
  const network::FlowKey& key = *packet.connection;
  if (ready_.contains(key)) return pass(DialMark::kNone);
  // The program's kernel asks again while we dial.
  if (pending_by_key_.contains(key)) return drop_packet(queue_->fd(), packet.id);
  Passage passage = guest_->services.gate.judge(guest_->policy, key.to);
  if (passage.refusal != DialMark::kNone) return pass(passage.refusal);
  // Two: the host's end now, the sandbox's in a moment.
  auto lease = SocketLease::take(guest_->services.sockets, guest_->sockets, 2);
  if (!lease) return pass(DialMark::kRefused);
  // The program's kernel asks again in a second.
  if (!guest_->rate.take(steady_clock::now())) return drop_packet(queue_->fd(), packet.id);
  if (pending_.size() >= kMostDials) give_up(pending_.begin());
  const auto pending = pending_.insert(pending_.end(), PendingDial{key, packet.id});
  pending_by_key_[key] = pending;
  net::spawn(guest_->services.executor, dial_first(pending, std::move(passage), std::move(*lease)));
}

void TcpSide::give_up(PendingList::iterator dial) {
  drop_packet(queue_->fd(), dial->packet);
  dial->control->cancel();
  pending_by_key_.erase(dial->key);
  pending_.erase(dial);
}

Task<void> TcpSide::dial_first(PendingList::iterator pending, Passage passage, SocketLease lease) {
  const auto self = shared_from_this();
  const auto control = pending->control;
  const auto traffic = traffic_of(passage);
  DialOutcome outcome = co_await dial(guest_->services, std::move(passage), control);
  if (control->canceled || closed_) co_return;
  const PendingDial done = std::move(*pending);
  pending_by_key_.erase(done.key);
  pending_.erase(pending);
  if (outcome.socket) {
    keep_ready(done.key,
               {std::move(outcome.socket), std::move(lease), traffic, steady_clock::now()});
    pass_packet(queue_->fd(), done.packet, DialMark::kNone);
  } else if (outcome.refusal == DialMark::kNone) {
    drop_packet(queue_->fd(), done.packet);
  } else {
    pass_packet(queue_->fd(), done.packet, outcome.refusal);
  }
}

void TcpSide::keep_ready(const network::FlowKey& key, Ready ready) {
  ready_order_.emplace_back(ready.since, key);
  ready_.emplace(key, std::move(ready));
  if (ready_order_.size() == 1) drop_stale();
}

// A program may give up between its first packet and the accept.
void TcpSide::drop_stale() {
  const auto now = steady_clock::now();
  while (!ready_order_.empty()) {
    const auto& [since, key] = ready_order_.front();
    const auto found = ready_.find(key);
    const bool current = found != ready_.end() && found->second.since == since;
    if (current && since + kReadyFor > now) break;
    if (current) ready_.erase(found);
    ready_order_.pop_front();
  }
  if (ready_order_.empty()) return;
  stale_timer_.expires_at(ready_order_.front().first + kReadyFor);
  stale_timer_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_) self->drop_stale();
  });
}

Task<void> TcpSide::accept_connections() {
  const auto self = shared_from_this();
  steady_clock::duration pause = kFirstPause;
  while (!closed_) {
    if (listener_) {
      if (co_await listener_->wait(Direction::kRead) && accept_some()) {
        pause = kFirstPause;
        if (std::exchange(out_of_descriptors_, false)) co_await net::sleep_for(kFirstPause);
        continue;
      }
      if (closed_) co_return;
      // A sandbox's root can end any socket of its network, ours too.
      listener_->close();
      listener_.reset();
    }
    co_await net::sleep_for(pause);
    pause = std::min<steady_clock::duration>(2 * pause, kLongestPause);
    if (closed_) co_return;
    if (auto fd = guest_->network.open_tcp_listener()) {
      listener_ = std::make_shared<net::FdWait>(guest_->services.executor, std::move(*fd));
    }
  }
}

bool TcpSide::accept_some() {
  for (int i = 0; i < kBatch; ++i) {
    sockaddr_storage address{};
    socklen_t length = sizeof address;
    UniqueFd fd(::accept4(listener_->fd(), reinterpret_cast<sockaddr*>(&address), &length,
                          SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd.valid()) {
      if (errno == EAGAIN) return true;
      if (errno == ECONNABORTED || errno == EINTR) continue;
      out_of_descriptors_ =
          errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
      return out_of_descriptors_;
    }
    const auto from = network::Endpoint::from(address);
    length = sizeof address;
    if (!from || ::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address), &length) != 0) {
      continue;
    }
    if (const auto to = network::Endpoint::from(address)) take(std::move(fd), {*from, *to});
  }
  return true;
}

void TcpSide::take(UniqueFd socket, const network::FlowKey& key) {
  const auto& executor = guest_->services.executor;
  auto found = ready_.extract(key);
  if (found.empty()) {
    net::spawn(executor, dial_late(std::move(socket), key));
    return;
  }
  Ready& ready = found.mapped();
  std::make_shared<Connection>(guest_, connections_, std::move(ready.lease),
                               std::make_shared<net::FdWait>(executor, std::move(socket)),
                               std::move(ready.socket), ready.traffic)
      ->start();
}

Task<void> TcpSide::dial_late(UniqueFd socket, network::FlowKey key) {
  const auto self = shared_from_this();
  Services& services = guest_->services;
  auto inner = std::make_shared<net::FdWait>(services.executor, std::move(socket));
  Passage passage = services.gate.judge(guest_->policy, key.to);
  auto lease = SocketLease::take(services.sockets, guest_->sockets, 2);
  if (passage.refusal != DialMark::kNone || !lease || !guest_->rate.take(steady_clock::now())) {
    co_return reset_socket(*inner);
  }
  const auto traffic = traffic_of(passage);
  const auto control = std::make_shared<DialControl>();
  late_.insert(control);
  net::spawn(services.executor, watch_late(inner, control));
  DialOutcome outcome = co_await dial(services, std::move(passage), control);
  late_.erase(control);
  if (!outcome.socket || closed_) co_return reset_socket(*inner);
  std::make_shared<Connection>(guest_, connections_, std::move(*lease), std::move(inner),
                               std::move(outcome.socket), traffic)
      ->start();
}

// Looks now and then: what the program sent may lie before its end, so that a wait would never be
// told of the end.
Task<void> TcpSide::watch_late(std::shared_ptr<net::FdWait> inner,
                               std::shared_ptr<DialControl> control) {
  const auto self = shared_from_this();
  std::optional<steady_clock::time_point> half_closed;
  for (;;) {
    co_await net::sleep_for(kLateCheck);
    if (closed_ || inner->closed() || !late_.contains(control)) co_return;
    pollfd seen{inner->fd(), POLLRDHUP, 0};
    if (::poll(&seen, 1, 0) < 0) continue;
    const auto now = steady_clock::now();
    if ((seen.revents & POLLRDHUP) != 0 && !half_closed) half_closed = now;
    const bool reset = (seen.revents & (POLLERR | POLLHUP)) != 0;
    // A program that has said all it has to say may wait for the answer; nobody can tell that from
    // one that has given up.
    if (reset || (half_closed && now - *half_closed >= kHalfClosedPatience)) {
      control->cancel();
      co_return;
    }
  }
}

}  // namespace alcove::relay

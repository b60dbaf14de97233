// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/udp_side.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "net/event_loops.h"
#include "net/timer.h"
#include "relay/dns_question.h"

namespace alcove::relay {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;
using Direction = net::FdWait::Direction;

constexpr auto kIdleFor = 30s;
constexpr auto kFirstPause = 100ms;
constexpr auto kLongestPause = 5s;
// Work for one socket before others get a turn.
constexpr int kBatch = 32;
// A program waits 5 s for its name server; two more can be asked in that time. Those that were
// asked may still answer: a name that nobody has asked for yet takes a while.
constexpr auto kServerPatience = 1500ms;
constexpr size_t kMostUnanswered = 8;
// What is kept to ask the next server: of one question (usual ones have less than 100 bytes), and
// of all of a sandbox. A question beyond that is asked once.
constexpr size_t kLargestKept = 4096;
constexpr size_t kMostKept = 256 << 10;
// Messages to one sandbox per second about datagrams that do not arrive.
constexpr int kMostRefusals = 100;

// A datagram, and the address that it was sent to.
struct Arrival {
  network::FlowKey key;
  size_t size = 0;
};

std::optional<network::Endpoint> original_destination(msghdr& header) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    const bool v4 = c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_RECVORIGDSTADDR;
    const bool v6 = c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_RECVORIGDSTADDR;
    if (!v4 && !v6) continue;
    sockaddr_storage address{};
    std::memcpy(&address, CMSG_DATA(c), v4 ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
    return network::Endpoint::from(address);
  }
  return {};
}

// Nothing with errno set if there is no datagram; one without ends if it is of no use.
std::optional<Arrival> receive(int fd, std::array<char, 65536>& buffer) {
  sockaddr_storage from{};
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[256];
  msghdr header{};
  header.msg_name = &from;
  header.msg_namelen = sizeof from;
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  const ssize_t got = ::recvmsg(fd, &header, MSG_DONTWAIT);
  if (got < 0) return {};
  Arrival arrival;
  arrival.size = static_cast<size_t>(got);
  const auto source = network::Endpoint::from(from);
  const auto destination = original_destination(header);
  if (source && destination) arrival.key = {*source, *destination};
  return arrival;
}

UniqueFd connect_datagrams(const network::Endpoint& target) {
  UniqueFd fd(::socket(target.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  sockaddr_storage address;
  const socklen_t length = target.to_sockaddr(address);
  if (fd.valid() && ::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
    fd.reset();
  }
  return fd;
}

}  // namespace

UdpSide::UdpSide(std::shared_ptr<Guest> guest)
    : guest_(std::move(guest)), expiry_(guest_->services.executor) {}

Result<void> UdpSide::start() {
  // Without a listener the rules refuse everything at once, name servers too.
  if (guest_->policy.reach == network::EgressPolicy::Reach::kNone) return {};
  ALCOVE_TRY_ASSIGN(UniqueFd listener, guest_->network.open_udp_listener());
  listener_ = std::make_shared<net::FdWait>(guest_->services.executor, std::move(listener));
  net::spawn(guest_->services.executor, receive_first_datagrams());
  return {};
}

void UdpSide::close() {
  closed_ = true;
  if (listener_) listener_->close();
  expiry_.cancel();
  while (!by_use_.empty()) end(*by_use_.front());
}

Task<void> UdpSide::receive_first_datagrams() {
  const auto self = shared_from_this();
  steady_clock::duration pause = kFirstPause;
  while (!closed_) {
    if (listener_) {
      if (co_await listener_->wait(Direction::kRead) && receive_some()) {
        pause = kFirstPause;
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
    if (auto fd = guest_->network.open_udp_listener()) {
      listener_ = std::make_shared<net::FdWait>(guest_->services.executor, std::move(*fd));
    }
  }
}

bool UdpSide::receive_some() {
  auto& buffer = guest_->services.buffer;
  for (int i = 0; i < kBatch; ++i) {
    const auto arrival = receive(listener_->fd(), buffer);
    if (!arrival) return errno == EAGAIN || errno == EINTR;
    if (arrival->key.to.port != 0) handle(arrival->key, {buffer.data(), arrival->size});
  }
  return true;
}

void UdpSide::handle(const network::FlowKey& key, std::string_view datagram) {
  const auto found = flows_.find(key);
  const FlowPtr flow = found != flows_.end() ? found->second : open(key);
  if (flow) send_out(*flow, datagram);
}

UdpSide::FlowPtr UdpSide::open(const network::FlowKey& key) {
  Services& services = guest_->services;
  Passage passage = services.gate.judge(guest_->policy, key.to);
  if (passage.refusal != network::DialMark::kNone) {
    refuse(key, Unreachable::kProhibited);
    return nullptr;
  }
  if (!guest_->rate.take(steady_clock::now())) return nullptr;
  if (flows_.size() >= kMostFlows) end(*by_use_.front());
  auto lease = SocketLease::take(services.sockets, guest_->sockets, 1 + passage.targets.size());
  if (!lease) return nullptr;
  auto inner = guest_->network.open_udp_flow(key);
  UniqueFd outer = connect_datagrams(passage.targets.front());
  if (!inner || !outer.valid()) return nullptr;
  auto flow = std::make_shared<Flow>(key, std::move(*lease));
  flow->inner = std::make_shared<net::FdWait>(services.executor, std::move(*inner));
  if (passage.name_server) flow->servers.assign(passage.targets.begin(), passage.targets.end());
  flow->used = steady_clock::now();
  flow->place = by_use_.insert(by_use_.end(), flow.get());
  flows_[key] = flow;
  if (flows_.size() == 1) expire();
  net::spawn(services.executor, carry_out(flow));
  add_outer(flow, std::move(outer));
  return flow;
}

void UdpSide::refuse(const network::FlowKey& key, Unreachable why) {
  const auto now = steady_clock::now();
  if (now - refusals_since_ >= 1s) {
    refusals_since_ = now;
    refusals_ = 0;
  }
  if (++refusals_ <= kMostRefusals) guest_->network.refuse_datagrams(key, why);
}

void UdpSide::end(Flow& flow) {
  if (std::exchange(flow.closed, true)) return;
  flow.inner->close();
  for (const auto& outer : flow.outers) outer->close();
  while (!flow.unanswered.empty()) forget_oldest_question(flow);
  by_use_.erase(flow.place);
  flows_.erase(flow.key);
}

void UdpSide::touch(Flow& flow) {
  flow.used = steady_clock::now();
  by_use_.splice(by_use_.end(), by_use_, flow.place);
}

// One timer for all flows: set for the longest unused one, not moved by use.
void UdpSide::expire() {
  const auto now = steady_clock::now();
  while (!by_use_.empty() && by_use_.front()->used + kIdleFor <= now) end(*by_use_.front());
  if (by_use_.empty()) return;
  expiry_.expires_at(by_use_.front()->used + kIdleFor);
  expiry_.async_wait([weak = weak_from_this()](const boost::system::error_code& error) {
    const auto self = weak.lock();
    if (!error && self && !self->closed_) self->expire();
  });
}

Task<void> UdpSide::carry_out(FlowPtr flow) {
  const auto self = shared_from_this();
  auto& buffer = guest_->services.buffer;
  while (!flow->closed && co_await flow->inner->wait(Direction::kRead)) {
    for (int i = 0; i < kBatch && !flow->closed; ++i) {
      const ssize_t got = ::recv(flow->inner->fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got >= 0) {
        send_out(*flow, {buffer.data(), static_cast<size_t>(got)});
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        // The program has closed its socket, or its root ours.
        end(*flow);
      }
    }
  }
  end(*flow);
}

void UdpSide::send_out(Flow& flow, std::string_view datagram) {
  touch(flow);
  if (!flow.servers.empty() && !take_question(flow, datagram)) return;
  // An error belongs to an earlier datagram, and the one who waits for answers gets it too.
  (void)::send(flow.outers.back()->fd(), datagram.data(), datagram.size(),
               MSG_DONTWAIT | MSG_NOSIGNAL);
}

void UdpSide::add_outer(const FlowPtr& flow, UniqueFd socket) {
  const auto& executor = guest_->services.executor;
  flow->outers.push_back(std::make_shared<net::FdWait>(executor, std::move(socket)));
  net::spawn(executor, carry_in(flow, flow->outers.back()));
}

Task<void> UdpSide::carry_in(FlowPtr flow, std::shared_ptr<net::FdWait> outer) {
  const auto self = shared_from_this();
  auto& buffer = guest_->services.buffer;
  while (!outer->closed()) {
    const auto ready = co_await outer->wait(Direction::kRead);
    if (flow->closed) co_return;
    if (!ready) {
      if (ready.error().code() != Code::kDeadlineExceeded) co_return end(*flow);
      outer->set_deadline(Direction::kRead, {});
      (void)ask_next_server(flow);
      continue;
    }
    for (int i = 0; i < kBatch && !flow->closed; ++i) {
      const ssize_t got = ::recv(outer->fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (got >= 0) {
        touch(*flow);
        forget_answered(*flow, {buffer.data(), static_cast<size_t>(got)});
        if (flow->unanswered.empty()) flow->outers.back()->set_deadline(Direction::kRead, {});
        (void)::send(flow->inner->fd(), buffer.data(), static_cast<size_t>(got),
                     MSG_DONTWAIT | MSG_NOSIGNAL);
      } else if (errno == EAGAIN) {
        break;
      } else if (errno != EINTR) {
        co_return drop_outer(flow, outer, errno);
      }
    }
  }
}

void UdpSide::drop_outer(const FlowPtr& flow, const std::shared_ptr<net::FdWait>& outer,
                         int error) {
  const bool current = outer == flow->outers.back();
  outer->close();
  std::erase(flow->outers, outer);
  if ((current && ask_next_server(flow)) || !flow->outers.empty()) return;
  if (error == ECONNREFUSED) refuse(flow->key, Unreachable::kPortClosed);
  end(*flow);
}

bool UdpSide::take_question(Flow& flow, std::string_view question) {
  const QuestionVerdict verdict = judge_question(question);
  if (verdict == QuestionVerdict::kNoMessage) return false;
  if (verdict != QuestionVerdict::kPass) {
    const std::string answer = make_refusal(question, verdict);
    (void)::send(flow.inner->fd(), answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    return false;
  }
  if (flow.unanswered.size() >= kMostUnanswered) forget_oldest_question(flow);
  keep_question(flow, question);
  if (flow.unanswered.size() == 1) {
    flow.outers.back()->set_deadline(Direction::kRead, steady_clock::now() + kServerPatience);
  }
  return true;
}

void UdpSide::keep_question(Flow& flow, std::string_view question) {
  const bool fits =
      question.size() <= kLargestKept && question_bytes_ + question.size() <= kMostKept;
  flow.unanswered.push_back({message_id(question), std::string(fits ? question : "")});
  question_bytes_ += flow.unanswered.back().text.size();
}

void UdpSide::forget_answered(Flow& flow, std::string_view answer) {
  const uint16_t id = message_id(answer);
  std::erase_if(flow.unanswered, [&](const Question& question) {
    if (question.id != id) return false;
    question_bytes_ -= question.text.size();
    return true;
  });
}

void UdpSide::forget_oldest_question(Flow& flow) {
  question_bytes_ -= flow.unanswered.front().text.size();
  flow.unanswered.pop_front();
}

bool UdpSide::ask_next_server(const FlowPtr& flow) {
  if (flow->servers.size() < 2) return false;
  guest_->services.resolvers.blame(flow->servers.front().address);
  flow->servers.pop_front();
  UniqueFd fd = connect_datagrams(flow->servers.front());
  if (!fd.valid()) return ask_next_server(flow);
  add_outer(flow, std::move(fd));
  const auto& outer = flow->outers.back();
  for (const auto& [id, question] : flow->unanswered) {
    if (question.empty()) continue;
    (void)::send(outer->fd(), question.data(), question.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
  }
  if (!flow->unanswered.empty()) {
    outer->set_deadline(Direction::kRead, steady_clock::now() + kServerPatience);
  }
  return true;
}

}  // namespace alcove::relay

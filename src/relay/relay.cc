// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/relay.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include <boost/asio/post.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"
#include "sys/netns.h"

namespace alcove::relay {
namespace {

using Direction = net::FdWait::Direction;

// Not counted: control connections, log, epoll and the like.
constexpr size_t kReservedDescriptors = 128;
// Namespace, listener for TCP and for UDP, queue.
constexpr size_t kSocketsPerSandbox = 4;
// Sockets of one sandbox: 2,048 connections.
constexpr size_t kMostPerSandbox = 4096;
// Directions of its connections that have data under way; the others are carried in little memory.
constexpr size_t kMostPipesPerSandbox = 64;

size_t usable(size_t descriptors) {
  return descriptors > 2 * kReservedDescriptors ? descriptors - kReservedDescriptors
                                                : descriptors / 2;
}

// Only the host's root, which could do anything here without asking.
bool may_ask(int socket) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         peer.uid == ::geteuid();
}

}  // namespace

Relay::Relay(boost::asio::io_context& loop, Options options, UniqueFd home, sys::RouteLookup routes)
    : loop_(loop),
      options_(options),
      home_(std::move(home)),
      services_{.executor = loop.get_executor(),
                .resolvers = resolvers_,
                .gate = Gate(std::move(routes), resolvers_),
                // A fifth of the descriptors for pipes (two each), the rest for sockets.
                .pipes = PipePool(usable(options.descriptors) / 10),
                .sockets = {.used = 0, .most = usable(options.descriptors) / 5 * 4},
                .buffer = {}} {
  (void)keep_spares();
}

Result<std::unique_ptr<Relay>> Relay::create(boost::asio::io_context& loop, Options options) {
  ALCOVE_TRY_ASSIGN(UniqueFd home, sys::open_own_netns());
  ALCOVE_TRY_ASSIGN(sys::RouteLookup routes, sys::RouteLookup::open());
  return std::unique_ptr<Relay>(new Relay(loop, options, std::move(home), std::move(routes)));
}

void Relay::serve(UniqueFd listener) {
  net::spawn(loop_,
             accept(std::make_shared<net::FdWait>(loop_.get_executor(), std::move(listener))));
}

bool Relay::keep_spares() {
  for (UniqueFd& spare : spares_) {
    if (!spare.valid()) spare.reset(::fcntl(home_.get(), F_DUPFD_CLOEXEC, 0));
  }
  return std::ranges::all_of(spares_, &UniqueFd::valid);
}

Task<void> Relay::accept(std::shared_ptr<net::FdWait> listener) {
  while (co_await listener->wait(Direction::kRead)) {
    free_spares();
    UniqueFd peer(::accept4(listener->fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const int error = errno;
    (void)keep_spares();
    if (!peer.valid()) {
      if (error != EAGAIN && error != EINTR)
        co_await net::sleep_for(std::chrono::milliseconds(100));
      continue;
    }
    if (!may_ask(peer.get())) continue;
    net::spawn(loop_,
               answer_peer(std::make_shared<net::FdWait>(loop_.get_executor(), std::move(peer))));
  }
}

Task<void> Relay::answer_peer(std::shared_ptr<net::FdWait> peer) {
  while (co_await peer->wait(Direction::kRead)) {
    for (;;) {
      free_spares();
      auto message = sys::receive_message(peer->fd());
      if (!message) {
        (void)keep_spares();
        if (message.error().error_number() == EAGAIN) break;
        if (message.error().code() == Code::kResourceExhausted) continue;
        co_return;
      }
      UniqueFd answers;
      if (!message->fds.empty()) {
        answers = std::move(message->fds.front());
        message->fds.erase(message->fds.begin());
      }
      const auto request = decode_request(message->bytes);
      const Answer answer =
          request
              ? std::visit([&](const auto& body) { return handle(body, message->fds); }, *request)
              : Answer(Failed{request.error().message()});
      if (answers.valid()) (void)sys::send_message(answers.get(), encode(answer), {});
      answers.reset();
      message->fds.clear();
      (void)keep_spares();
    }
  }
}

Answer Relay::handle(const Hello& hello, std::vector<UniqueFd>&) {
  std::vector<network::IpAddress> resolvers;
  for (const std::string& text : hello.resolvers) {
    if (const auto address = network::IpAddress::parse(text)) resolvers.push_back(*address);
  }
  resolvers_.set_override(std::move(resolvers));
  return Welcome{};
}

Answer Relay::handle(const Open& open, std::vector<UniqueFd>& fds) {
  if (fds.size() != 1) return Failed{"no network namespace"};
  const auto opened = open_sandbox(open, std::move(fds[0]));
  if (opened) return Done{};
  if (opened.error().code() == Code::kResourceExhausted) return Full{opened.error().message()};
  return Failed{opened.error().message()};
}

Answer Relay::handle(const Close& close, std::vector<UniqueFd>&) {
  close_sandbox(close.id);
  return Done{};
}

Answer Relay::handle(const List& list, std::vector<UniqueFd>&) {
  Listing listing;
  for (auto next = sandboxes_.upper_bound(list.after);
       next != sandboxes_.end() && listing.ids.size() < kListingSize; ++next) {
    listing.ids.push_back(next->first);
  }
  return listing;
}

Answer Relay::handle(const Stop&, std::vector<UniqueFd>&) {
  boost::asio::post(loop_, [this] { loop_.stop(); });
  return Done{};
}

Result<void> Relay::open_sandbox(const Open& open, UniqueFd netns) {
  const auto found = sandboxes_.find(open.id);
  if (found != sandboxes_.end()) {
    const Guest& known = *found->second.guest;
    // A server that was restarted: connections go on.
    if (known.network.is(netns.get()) && known.policy == open.policy) return {};
    close_sandbox(open.id);
  }
  if ((sandboxes_.size() + 1) * kSocketsPerSandbox > services_.sockets.most) {
    return fail(Code::kResourceExhausted, "the relay has no descriptors left");
  }
  Sandbox sandbox;
  sandbox.guest.reset(new Guest{
      .services = services_,
      .policy = open.policy,
      .network = GuestNetwork(std::move(netns), home_.get()),
      .sockets = std::make_shared<SocketCount>(SocketCount{.used = 0, .most = kMostPerSandbox}),
      .pipes = {.used = 0, .most = kMostPipesPerSandbox},
      .rate = {}});
  sandbox.tcp = std::make_shared<TcpSide>(sandbox.guest);
  sandbox.udp = std::make_shared<UdpSide>(sandbox.guest);
  Result<void> started = sandbox.tcp->start();
  if (started) started = sandbox.udp->start();
  // Not one that takes the last descriptors.
  if (started && !keep_spares()) {
    started = fail(Code::kResourceExhausted, "the relay has no descriptors left");
  }
  if (!started) {
    sandbox.tcp->close();
    sandbox.udp->close();
    return started;
  }
  services_.sockets.used += kSocketsPerSandbox;
  sandboxes_.emplace(open.id, std::move(sandbox));
  return {};
}

void Relay::close_sandbox(const std::string& id) {
  const auto found = sandboxes_.find(id);
  if (found == sandboxes_.end()) return;
  found->second.tcp->close();
  found->second.udp->close();
  sandboxes_.erase(found);
  services_.sockets.used -= kSocketsPerSandbox;
}

}  // namespace alcove::relay

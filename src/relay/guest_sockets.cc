// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/guest_sockets.h"

#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>

#include "base/assert.h"
#include "network/guest_network.h"
#include "relay/packet_queue.h"

namespace alcove::relay {
namespace {

constexpr int kBacklog = 4096;

Result<void> set_option(int fd, int level, int name) {
  const int on = 1;
  if (::setsockopt(fd, level, name, &on, sizeof on) != 0) return fail_errno(errno, "setsockopt");
  return {};
}

// One socket takes both families; a kernel without IPv6 gets one for IPv4.
struct DualSocket {
  UniqueFd fd;
  int family = AF_INET6;
};

Result<DualSocket> open_dual(int type) {
  DualSocket socket;
  socket.fd.reset(::socket(AF_INET6, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.fd.valid() && errno == EAFNOSUPPORT) {
    socket.family = AF_INET;
    socket.fd.reset(::socket(AF_INET, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  }
  if (!socket.fd.valid()) return fail_errno(errno, "socket");
  if (socket.family == AF_INET6) {
    const int off = 0;
    if (::setsockopt(socket.fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0) {
      return fail_errno(errno, "dual-stack socket");
    }
  }
  // One flag for both families.
  ALCOVE_TRY(set_option(socket.fd.get(), IPPROTO_IP, IP_TRANSPARENT));
  return socket;
}

Result<void> bind_everywhere(const DualSocket& socket) {
  sockaddr_in v4{};
  v4.sin_family = AF_INET;
  v4.sin_port = htons(network::kRelayPort);
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(network::kRelayPort);
  const bool is_v6 = socket.family == AF_INET6;
  const auto* address =
      is_v6 ? reinterpret_cast<const sockaddr*>(&v6) : reinterpret_cast<const sockaddr*>(&v4);
  if (::bind(socket.fd.get(), address, is_v6 ? sizeof v6 : sizeof v4) != 0) {
    return fail_errno(errno, "bind the relay's port");
  }
  return {};
}

}  // namespace

template <typename Open>
Result<UniqueFd> GuestNetwork::inside(Open open) const {
  if (::setns(netns_.get(), CLONE_NEWNET) != 0) return fail_errno(errno, "enter network namespace");
  auto made = open();
  // Connections of all sandboxes would be made from a sandbox's network.
  ALCOVE_ASSERT(::setns(home_, CLONE_NEWNET) == 0);
  return made;
}

Result<UniqueFd> GuestNetwork::open_tcp_listener() const {
  return inside([]() -> Result<UniqueFd> {
    ALCOVE_TRY_ASSIGN(DualSocket socket, open_dual(SOCK_STREAM));
    ALCOVE_TRY(set_option(socket.fd.get(), SOL_SOCKET, SO_REUSEADDR));
    ALCOVE_TRY(bind_everywhere(socket));
    if (::listen(socket.fd.get(), kBacklog) != 0) return fail_errno(errno, "listen");
    return std::move(socket.fd);
  });
}

Result<UniqueFd> GuestNetwork::open_udp_listener() const {
  return inside([]() -> Result<UniqueFd> {
    ALCOVE_TRY_ASSIGN(DualSocket socket, open_dual(SOCK_DGRAM));
    ALCOVE_TRY(set_option(socket.fd.get(), IPPROTO_IP, IP_RECVORIGDSTADDR));
    if (socket.family == AF_INET6) {
      ALCOVE_TRY(set_option(socket.fd.get(), IPPROTO_IPV6, IPV6_RECVORIGDSTADDR));
    }
    // First datagrams of many flows at once wait here; each costs more than a packet.
    constexpr int kBuffer = 1 << 20;
    (void)::setsockopt(socket.fd.get(), SOL_SOCKET, SO_RCVBUFFORCE, &kBuffer, sizeof kBuffer);
    ALCOVE_TRY(bind_everywhere(socket));
    return std::move(socket.fd);
  });
}

Result<UniqueFd> GuestNetwork::open_udp_flow(const network::FlowKey& flow) const {
  return inside([&]() -> Result<UniqueFd> {
    UniqueFd fd(::socket(flow.to.family(), SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd.valid()) return fail_errno(errno, "socket");
    ALCOVE_TRY(set_option(fd.get(), IPPROTO_IP, IP_TRANSPARENT));
    ALCOVE_TRY(set_option(fd.get(), SOL_SOCKET, SO_REUSEADDR));
    sockaddr_storage address;
    socklen_t length = flow.to.to_sockaddr(address);
    if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      return fail_errno(errno, "bind as the destination");
    }
    length = flow.from.to_sockaddr(address);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      return fail_errno(errno, "connect to the program");
    }
    return fd;
  });
}

Result<UniqueFd> GuestNetwork::open_queue() const {
  return inside([] { return open_packet_queue(); });
}

void GuestNetwork::refuse_datagrams(const network::FlowKey& flow, Unreachable why) const {
  const bool v4 = flow.to.address.is_v4();
  const auto socket = inside([&]() -> Result<UniqueFd> {
    UniqueFd fd(::socket(flow.to.family(), SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                         v4 ? static_cast<int>(IPPROTO_ICMP) : static_cast<int>(IPPROTO_ICMPV6)));
    if (!fd.valid()) return fail_errno(errno, "socket");
    return fd;
  });
  if (!socket) return;
  // Raw sockets of IPv6 have no options of IPv4.
  const auto transparent = v4 ? set_option(socket->get(), IPPROTO_IP, IP_TRANSPARENT)
                              : set_option(socket->get(), IPPROTO_IPV6, IPV6_TRANSPARENT);
  if (!transparent) return;
  sockaddr_storage address;
  socklen_t length = network::Endpoint{flow.to.address, 0}.to_sockaddr(address);
  if (::bind(socket->get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return;
  length = network::Endpoint{flow.from.address, 0}.to_sockaddr(address);
  const std::string message = make_unreachable_message(flow, why);
  (void)::sendto(socket->get(), message.data(), message.size(), MSG_NOSIGNAL,
                 reinterpret_cast<sockaddr*>(&address), length);
}

bool GuestNetwork::is(int netns) const {
  struct stat mine{};
  struct stat other{};
  return ::fstat(netns_.get(), &mine) == 0 && ::fstat(netns, &other) == 0 &&
         mine.st_dev == other.st_dev && mine.st_ino == other.st_ino;
}

}  // namespace alcove::relay

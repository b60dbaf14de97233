// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/testing/test_network.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <poll.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "base/strings.h"
#include "network/rule_sets.h"
#include "sys/loopback_network.h"
#include "sys/netlink.h"
#include "sys/netns.h"

namespace alcove::relay::testing {
namespace {

constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};

void set_timeouts(int fd) {
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
}

UniqueFd open_socket(const network::Endpoint& at, int type) {
  UniqueFd fd(::socket(at.family(), type | SOCK_CLOEXEC, 0));
  const int on = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  set_timeouts(fd.get());
  return fd;
}

UniqueFd bind_in(const TestNamespace& where, const network::Endpoint& at, int type) {
  UniqueFd fd;
  where.run([&] {
    fd = open_socket(at, type);
    sockaddr_storage address;
    const socklen_t length = at.to_sockaddr(address);
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0) << errno;
    if (type == SOCK_STREAM) ASSERT_EQ(::listen(fd.get(), 4096), 0);
  });
  return fd;
}

}  // namespace

TestNamespace::TestNamespace() {
  std::thread([this] {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0) << "needs root";
    auto own = sys::open_own_netns();
    ASSERT_TRUE(own);
    fd_ = std::make_shared<const UniqueFd>(std::move(*own));
  }).join();
}

void TestNamespace::run(const std::function<void()>& body) const {
  std::thread([&] {
    ASSERT_EQ(::setns(fd(), CLONE_NEWNET), 0);
    body();
  }).join();
}

void TestNamespace::shell(const std::string& command) const {
  run([&] { ASSERT_EQ(std::system(command.c_str()), 0) << command; });
}

std::string TestNamespace::output_of(const std::string& command) const {
  std::string output;
  run([&] {
    FILE* pipe = ::popen(command.c_str(), "r");
    ASSERT_NE(pipe, nullptr);
    for (int c = ::fgetc(pipe); c != EOF; c = ::fgetc(pipe)) output += static_cast<char>(c);
    ::pclose(pipe);
  });
  return output;
}

TestNetwork::TestNetwork() {
  host.shell(cat("ip link set lo up && ip link add cable type veth peer name cable netns /proc/",
                 ::getpid(), "/fd/", internet.fd()));
  internet.shell(
      "ip link set lo up && ip link set cable up && ip addr add 192.0.2.2/24 dev cable && "
      "ip addr add 2001:db8::2/64 dev cable nodad && "
      "ip route add local 198.51.100.0/24 dev lo && ip addr add 2001:db8:1::7/128 dev lo");
  host.shell(
      "ip link set cable up && ip addr add 192.0.2.1/24 dev cable && "
      "ip addr add 2001:db8::1/64 dev cable nodad && "
      "ip route add 198.51.100.0/24 via 192.0.2.2 && ip route add 203.0.113.0/25 via 192.0.2.2 && "
      "ip route add unreachable 203.0.113.128/25 && ip -6 route add 2001:db8:1::/64 via "
      "2001:db8::2");
  guest.run([] { prepare_guest_network(); });
}

void prepare_guest_network(Queue queue) {
  int error = -1;
  for (const network::RuleSet& rules : network::make_rule_sets()) {
    if (rules.asks_first && queue == Queue::kNone) continue;
    const auto socket = sys::open_netlink(NETLINK_NETFILTER);
    ASSERT_TRUE(socket);
    error = sys::run_netlink(socket->get(), rules.batch);
    if (error == 0) break;
  }
  ASSERT_EQ(error, 0);
  in_addr v4{};
  in6_addr v6{};
  ::inet_pton(AF_INET, network::kGuestIpv4, &v4);
  ::inet_pton(AF_INET6, network::kGuestIpv6, &v6);
  ASSERT_EQ(sys::lead_ipv4_to_loopback(v4), 0);
  ASSERT_EQ(sys::lead_ipv6_to_loopback(v6), 0);
}

network::Endpoint endpoint(const std::string& address, uint16_t port) {
  return {network::IpAddress::parse(address).value(), port};
}

UniqueFd listen_in(const TestNamespace& where, const network::Endpoint& at) {
  return bind_in(where, at, SOCK_STREAM);
}

UniqueFd bind_datagrams_in(const TestNamespace& where, const network::Endpoint& at) {
  return bind_in(where, at, SOCK_DGRAM);
}

UniqueFd accept_from(const UniqueFd& listener) {
  UniqueFd fd(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (fd.valid()) set_timeouts(fd.get());
  return fd;
}

Attempt connect_in(const TestNamespace& where, const network::Endpoint& to,
                   std::chrono::milliseconds patience) {
  Attempt attempt;
  where.run([&] {
    attempt.fd = open_socket(to, SOCK_STREAM | SOCK_NONBLOCK);
    sockaddr_storage address;
    const socklen_t length = to.to_sockaddr(address);
    const auto start = std::chrono::steady_clock::now();
    if (::connect(attempt.fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      attempt.error = errno;
      if (attempt.error == EINPROGRESS) {
        pollfd waiting{attempt.fd.get(), POLLOUT, 0};
        attempt.error = ETIMEDOUT;
        if (::poll(&waiting, 1, static_cast<int>(patience.count())) == 1) {
          socklen_t size = sizeof attempt.error;
          ::getsockopt(attempt.fd.get(), SOL_SOCKET, SO_ERROR, &attempt.error, &size);
        }
      }
    }
    attempt.took = std::chrono::duration_cast<std::chrono::milliseconds>(
        std::chrono::steady_clock::now() - start);
  });
  ::fcntl(attempt.fd.get(), F_SETFL, 0);
  return attempt;
}

UniqueFd datagrams_in(const TestNamespace& where, const network::Endpoint& to) {
  UniqueFd fd;
  where.run([&] {
    fd = open_socket(to, SOCK_DGRAM);
    sockaddr_storage address;
    const socklen_t length = to.to_sockaddr(address);
    ASSERT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length), 0) << errno;
  });
  return fd;
}

bool send_text(const UniqueFd& fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

std::string receive_text(const UniqueFd& fd, size_t size) {
  std::string text;
  std::string buffer(std::min<size_t>(size, 1 << 16), '\0');
  while (text.size() < size) {
    const ssize_t got =
        ::recv(fd.get(), buffer.data(), std::min(buffer.size(), size - text.size()), 0);
    if (got == 0) break;
    if (got < 0) return text + cat("(error ", errno, ")");
    text.append(buffer, 0, static_cast<size_t>(got));
  }
  return text;
}

}  // namespace alcove::relay::testing

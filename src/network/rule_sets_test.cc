// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/rule_sets.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

#include "sys/loopback_network.h"
#include "sys/netlink.h"

namespace alcove::network {
namespace {

// Runs in a network namespace of its own.
template <typename Body>
void in_new_network(Body body) {
  std::thread([&] {
    ASSERT_EQ(::unshare(CLONE_NEWNET), 0);
    body();
  }).join();
}

int load(const RuleSet& rules) {
  const auto socket = sys::open_netlink(NETLINK_NETFILTER);
  return socket ? sys::run_netlink(socket->get(), rules.batch) : socket.error().error_number();
}

int lead_to_loopback() {
  in_addr v4{};
  in6_addr v6{};
  ::inet_pton(AF_INET, kGuestIpv4, &v4);
  ::inet_pton(AF_INET6, kGuestIpv6, &v6);
  const int error = sys::lead_ipv4_to_loopback(v4);
  return error != 0 ? error : sys::lead_ipv6_to_loopback(v6);
}

// errno of a datagram's way to this address, 0 if nothing objects.
int send_datagram(const char* address) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(9);
  ::inet_pton(AF_INET, address, &to.sin_addr);
  const UniqueFd fd(::socket(AF_INET, SOCK_DGRAM, 0));
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof to) != 0) return errno;
  (void)::send(fd.get(), "x", 1, 0);
  return ::send(fd.get(), "x", 1, 0) == 1 ? 0 : errno;
}

TEST(RuleSets, TheKernelTakesOneThatAsksFirst) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  const auto all = make_rule_sets();
  ASSERT_EQ(all.size(), 3u);
  bool asks_first = false;
  for (const RuleSet& rules : all) {
    in_new_network([&] {
      const int error = load(rules);
      // A kernel without one way of queueing says so; anything else is a mistake in the batch.
      if (rules.asks_first) {
        EXPECT_TRUE(error == 0 || error == ENOENT || error == EOPNOTSUPP) << error;
        asks_first |= error == 0;
      } else {
        EXPECT_EQ(error, 0);
      }
    });
  }
  EXPECT_TRUE(asks_first);
}

TEST(RuleSets, WithoutARelayNothingLeavesAndTheLocalWorks) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  in_new_network([] {
    ASSERT_EQ(load(make_rule_sets().back()), 0);
    ASSERT_EQ(lead_to_loopback(), 0);
    EXPECT_EQ(send_datagram("192.0.2.1"), EHOSTUNREACH);
    EXPECT_EQ(send_datagram("10.1.2.3"), EHOSTUNREACH);
    // Nobody listens there: the sandbox's own kernel answers.
    EXPECT_EQ(send_datagram("127.0.0.1"), ECONNREFUSED);
    EXPECT_EQ(send_datagram(kGuestIpv4), ECONNREFUSED);
  });
}

}  // namespace
}  // namespace alcove::network

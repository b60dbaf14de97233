// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Datagrams through a real relay process, in network namespaces of the test.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "relay/rate_limit.h"
#include "relay/testing/datagrams.h"
#include "relay/testing/relay_fixture.h"

namespace alcove::relay::testing {
namespace {

using namespace std::chrono_literals;

class RelayUdp : public RelayFixture {};

TEST_F(RelayUdp, DatagramsOfAllSizesGoBothWays) {
  open_guest();
  for (const char* address : {"198.51.100.7", "2001:db8:1::7"}) {
    const auto to = endpoint(address, 9000);
    const UniqueFd server = bind_datagrams_in(net_->internet, to);
    const UniqueFd client = datagrams_in(net_->guest, to);
    for (const size_t size : {0, 1, 1472, 8000, 65000}) {
      const std::string datagram(size, 'x');
      ASSERT_EQ(::send(client.get(), datagram.data(), size, 0), static_cast<ssize_t>(size));
      EXPECT_EQ(answer_one(server, datagram), datagram) << address << " " << size;
      EXPECT_EQ(receive_datagram(client), datagram) << address << " " << size;
    }
  }
}

TEST_F(RelayUdp, AnswersComeFromWhomTheProgramAsked) {
  open_guest();
  const auto first = endpoint("198.51.100.1", 9000);
  const auto second = endpoint("198.51.100.2", 9001);
  const UniqueFd first_server = bind_datagrams_in(net_->internet, first);
  const UniqueFd second_server = bind_datagrams_in(net_->internet, second);
  const UniqueFd client = bind_datagrams_in(net_->guest, endpoint("0.0.0.0", 0));
  for (const auto& to : {first, second, first}) {
    sockaddr_storage address;
    const socklen_t length = to.to_sockaddr(address);
    ASSERT_EQ(::sendto(client.get(), "?", 1, 0, reinterpret_cast<sockaddr*>(&address), length), 1);
    EXPECT_EQ(answer_one(to == first ? first_server : second_server, "!"), "?");
    char answer[2];
    socklen_t from_length = sizeof address;
    ASSERT_EQ(::recvfrom(client.get(), answer, sizeof answer, 0,
                         reinterpret_cast<sockaddr*>(&address), &from_length),
              1);
    EXPECT_EQ(*network::Endpoint::from(address), to);
  }
}

TEST_F(RelayUdp, HostAndPrivateAddressesGetNothing) {
  open_guest();
  const UniqueFd v4 = bind_datagrams_in(net_->host, endpoint("0.0.0.0", 9000));
  const UniqueFd v6 = bind_datagrams_in(net_->host, endpoint("2001:db8::1", 9000));
  for (const char* address : {"192.0.2.1", "10.0.0.1", "169.254.169.254", "192.0.2.255",
                              "2001:db8::1", "224.0.0.1", "127.1.2.3"}) {
    const UniqueFd client =
        bind_datagrams_in(net_->guest, endpoint(address[4] == ':' ? "::" : "0.0.0.0", 0));
    sockaddr_storage to;
    const socklen_t length = endpoint(address, 9000).to_sockaddr(to);
    (void)::sendto(client.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), length);
  }
  EXPECT_FALSE(arrives(v4, 300ms));
  EXPECT_FALSE(arrives(v6, 0ms));
}

TEST_F(RelayUdp, ProgramsAreToldWhatDoesNotArrive) {
  open_guest();
  for (const char* address : {"198.51.100.7", "2001:db8:1::7"}) {
    const UniqueFd closed = datagrams_in(net_->guest, endpoint(address, 9999));
    ASSERT_TRUE(send_text(closed, "x"));
    EXPECT_EQ(receive_text(closed, 1), cat("(error ", ECONNREFUSED, ")")) << address;
  }
  for (const auto& [address, error] :
       {std::pair("10.1.2.3", EHOSTUNREACH), {"192.0.2.1", EHOSTUNREACH}, {"fd12::1", EACCES}}) {
    const UniqueFd refused = datagrams_in(net_->guest, endpoint(address, 9999));
    ASSERT_TRUE(send_text(refused, "x"));
    EXPECT_EQ(receive_text(refused, 1), cat("(error ", error, ")")) << address;
  }
}

TEST_F(RelayUdp, FlowsAreBounded) {
  open_guest();
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.7", 9000));
  const UniqueFd client = bind_datagrams_in(net_->guest, endpoint("0.0.0.0", 0));
  for (int i = 0; i < 1000; ++i) {
    sockaddr_storage to;
    const socklen_t length =
        endpoint("198.51.100.7", static_cast<uint16_t>(10'000 + i)).to_sockaddr(to);
    ASSERT_EQ(::sendto(client.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&to), length), 1);
  }
  const UniqueFd good = datagrams_in(net_->guest, endpoint("198.51.100.7", 9000));
  // Datagrams of a burst may be lost; what counts is that one gets through.
  ASSERT_TRUE(eventually([&] { return send_text(good, "still there?") && arrives(server, 0ms); }));
  EXPECT_EQ(answer_one(server, "yes"), "still there?");
  EXPECT_EQ(receive_datagram(good), "yes");
  EXPECT_LE(relay_descriptors(), 2u * 256u + 60u);
}

TEST_F(RelayUdp, FlowsAreOpenedNoFasterThanTheRate) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 9000);
  const UniqueFd server = bind_datagrams_in(net_->internet, to);
  const auto begin = std::chrono::steady_clock::now();
  int opened = 0;
  net_->guest.run([&] {
    sockaddr_storage address;
    const socklen_t length = to.to_sockaddr(address);
    // Open to the end: a port that is used again would belong to an old flow.
    std::vector<UniqueFd> clients;
    while (opened < 2 * RateLimit::kBurst) {
      // Many at a time, which is faster than the rate; not more than sockets hold.
      for (int i = 0; i < 100; ++i) {
        clients.emplace_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        ASSERT_EQ(::sendto(clients.back().get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address),
                           length),
                  1);
      }
      for (int i = 0; i < 100; ++i, ++opened) {
        // Nobody sends it again: this wait is for a slow machine only.
        if (!arrives(server, 3000ms)) return;
        EXPECT_EQ(answer_one(server, "!"), "x");
      }
    }
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(opened, RateLimit::kBurst);
  EXPECT_LE(opened, RateLimit::kBurst + RateLimit::kPerSecond * took.count() + 1);
  // Nothing is worse for it afterwards.
  const UniqueFd listener = listen_in(net_->internet, to);
  EXPECT_EQ(connect_in(net_->guest, to).error, 0);
}

// The tasks of a flow end after the rest of its sandbox; with a sanitizer they tell what they
// touch.
TEST_F(RelayUdp, ASandboxMayEndWithFlowsOpen) {
  const size_t before = relay_descriptors();
  open_guest();
  const auto to = endpoint("198.51.100.7", 9000);
  const UniqueFd server = bind_datagrams_in(net_->internet, to);
  const UniqueFd client = datagrams_in(net_->guest, to);
  ASSERT_TRUE(send_text(client, "?"));
  EXPECT_EQ(answer_one(server, "!"), "?");
  EXPECT_EQ(receive_datagram(client), "!");
  const pid_t relay = client_->pid();
  client_->close(id_);
  EXPECT_TRUE(eventually([&] { return relay_descriptors() == before; })) << relay_descriptors();
  EXPECT_EQ(client_->pid(), relay);
}

}  // namespace
}  // namespace alcove::relay::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_queue.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "relay/carrier.h"
#include "relay/control_messages.h"
#include "relay/queued_packet.h"
#include "relay/rate_limit.h"
#include "relay/resolvers.h"
#include "relay/restart_pause.h"
#include "relay/socket_count.h"
#include "relay/testing/packets.h"
#include "sys/netlink.h"

namespace alcove::relay {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(ControlMessages, SurviveTheWire) {
  const network::EgressPolicy none{network::EgressPolicy::Reach::kNone};
  auto hello = decode_request(encode(Request(Hello{7, {"9.9.9.9", "::1"}})));
  ASSERT_TRUE(hello);
  EXPECT_EQ(std::get<Hello>(*hello).version, 7u);
  EXPECT_THAT(std::get<Hello>(*hello).resolvers, ElementsAre("9.9.9.9", "::1"));
  auto open = decode_request(encode(Request(Open{"box", none})));
  ASSERT_TRUE(open);
  EXPECT_EQ(std::get<Open>(*open).id, "box");
  EXPECT_EQ(std::get<Open>(*open).policy, none);
  EXPECT_EQ(std::get<Close>(*decode_request(encode(Request(Close{"box"})))).id, "box");
  EXPECT_EQ(std::get<List>(*decode_request(encode(Request(List{"box"})))).after, "box");
  EXPECT_TRUE(std::holds_alternative<Stop>(*decode_request(encode(Request(Stop{})))));

  EXPECT_TRUE(std::holds_alternative<Done>(*decode_answer(encode(Answer(Done{})))));
  EXPECT_EQ(std::get<Failed>(*decode_answer(encode(Answer(Failed{"why"})))).message, "why");
  EXPECT_EQ(std::get<Welcome>(*decode_answer(encode(Answer(Welcome{3})))).version, 3u);
  EXPECT_EQ(std::get<Full>(*decode_answer(encode(Answer(Full{"why"})))).message, "why");
  EXPECT_THAT(std::get<Listing>(*decode_answer(encode(Answer(Listing{{"a", "b"}})))).ids,
              ElementsAre("a", "b"));
}

TEST(ControlMessages, EveryCutAndAnExtraByteIsRefused) {
  for (const Request& request :
       {Request(Hello{1, {"9.9.9.9"}}), Request(Open{"box", {}}), Request(Close{"box"})}) {
    const std::string whole = encode(request);
    for (size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(decode_request(whole.substr(0, size))) << size;
    }
    EXPECT_FALSE(decode_request(whole + "x"));
  }
  EXPECT_FALSE(decode_request(std::string(16, '\xff')));
  EXPECT_FALSE(decode_answer(std::string(16, '\xff')));
}

TEST(ControlMessages, APolicyFromTheFutureIsRefusedNotWidened) {
  std::string bytes = encode(Request(Open{"box", {network::EgressPolicy::Reach::kInternet}}));
  bytes.replace(bytes.find("internet"), 8, "rules-v2");
  EXPECT_FALSE(decode_request(bytes));
}

TEST(QueuedPacket, FirstPacketsNameBothEnds) {
  const auto v4 = parse_connection_request(testing::tcp4_packet("10.11.12.2", "198.51.100.7"));
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->from.address.to_text(), "10.11.12.2");
  EXPECT_EQ(v4->from.port, 40000);
  EXPECT_EQ(v4->to.address.to_text(), "198.51.100.7");
  EXPECT_EQ(v4->to.port, 443);
  const auto v6 = parse_connection_request(testing::tcp6_packet("fd00:11::2", "2001:db8:1::7"));
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->to.address.to_text(), "2001:db8:1::7");
  EXPECT_EQ(v6->to.port, 443);
}

TEST(QueuedPacket, AnythingElseIsNoFirstPacket) {
  const std::string good = testing::tcp4_packet("10.11.12.2", "198.51.100.7");
  for (size_t size = 0; size < 40; ++size) {
    EXPECT_FALSE(parse_connection_request(good.substr(0, size))) << size;
  }
  const auto with = [&](size_t at, char value) {
    std::string packet = good;
    packet[at] = value;
    return parse_connection_request(packet);
  };
  EXPECT_FALSE(with(0, '\x44'));   // header shorter than the smallest
  EXPECT_FALSE(with(0, '\x4f'));   // header longer than the packet
  EXPECT_FALSE(with(0, '\x75'));   // another IP
  EXPECT_FALSE(with(7, '\x01'));   // a later fragment
  EXPECT_FALSE(with(9, '\x11'));   // UDP
  EXPECT_FALSE(with(33, '\x12'));  // SYN and ACK
  EXPECT_FALSE(with(33, '\x06'));  // SYN and RST
  EXPECT_FALSE(with(33, '\x10'));  // ACK
  EXPECT_TRUE(with(33, '\xc2'));   // SYN with congestion bits
  std::string v6 = testing::tcp6_packet("fd00:11::2", "2001:db8:1::7");
  v6[6] = 0;  // an extension header
  EXPECT_FALSE(parse_connection_request(v6));
}

TEST(QueuedPacket, IsReadFromItsNetlinkMessage) {
  const std::string packet = testing::tcp4_packet("10.11.12.2", "198.51.100.7");
  const std::string message = testing::queue_message(77, packet);
  const auto parsed = parse_queued_packet(message);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->id, 77u);
  ASSERT_TRUE(parsed->connection);
  EXPECT_EQ(parsed->connection->to.port, 443);
  // Garbage in the queue still gets a verdict.
  const auto garbage = parse_queued_packet(testing::queue_message(78, "garbage"));
  ASSERT_TRUE(garbage);
  EXPECT_EQ(garbage->id, 78u);
  EXPECT_FALSE(garbage->connection);
  for (size_t size = 0; size < message.size(); ++size) {
    EXPECT_FALSE(parse_queued_packet(message.substr(0, size))) << size;
  }
}

std::vector<std::string> texts(const std::vector<network::IpAddress>& addresses) {
  std::vector<std::string> out;
  for (const auto& address : addresses) out.push_back(address.to_text());
  return out;
}

TEST(Resolvers, LinesOfResolvConf) {
  EXPECT_THAT(texts(parse_resolv_conf("# nameserver 1.1.1.1\n"
                                      "nameserver 192.0.2.53\n"
                                      "nameserver\t2001:db8::53  # second\n"
                                      "nameserver 192.0.2.53\n"
                                      "nameservers 1.2.3.4\nnameserver4.4.4.4\n"
                                      "nameserver dns.example\nnameserver fe80::1%eth0\n"
                                      "options timeout:1\nsearch example.org\n"
                                      "nameserver 127.0.0.53")),
              ElementsAre("192.0.2.53", "2001:db8::53", "127.0.0.53"));
  EXPECT_THAT(parse_resolv_conf(""), IsEmpty());
}

TEST(Resolvers, FollowTheFileAndTheOverride) {
  const std::string path = ::testing::TempDir() + "resolv-" + random_alphanumeric(8);
  Resolvers resolvers(path);
  EXPECT_THAT(resolvers.servers(), IsEmpty());
  std::ofstream(path) << "nameserver 192.0.2.1\nnameserver 192.0.2.2\nnameserver 192.0.2.3\n";
  EXPECT_THAT(texts(resolvers.servers()), ElementsAre("192.0.2.1", "192.0.2.2", "192.0.2.3"));
  resolvers.blame(*network::IpAddress::parse("192.0.2.1"));
  EXPECT_THAT(texts(resolvers.servers()), ElementsAre("192.0.2.2", "192.0.2.3", "192.0.2.1"));
  // Replaced, as resolvconf does it.
  std::ofstream(path + ".new") << "nameserver 192.0.2.9\n";
  std::filesystem::rename(path + ".new", path);
  EXPECT_THAT(texts(resolvers.servers()), ElementsAre("192.0.2.9"));
  resolvers.set_override({*network::IpAddress::parse("198.51.100.53")});
  EXPECT_THAT(texts(resolvers.servers()), ElementsAre("198.51.100.53"));
  resolvers.set_override({});
  EXPECT_THAT(texts(resolvers.servers()), ElementsAre("192.0.2.9"));
  std::filesystem::remove(path);
}

TEST(RestartPause, GrowsWhileRelaysDieYoung) {
  using namespace std::chrono_literals;
  RestartPause pause;
  RestartPause::TimePoint now{1h};
  EXPECT_LT(pause.next(), now);
  std::vector<RestartPause::Duration> pauses;
  for (int i = 0; i < 8; ++i) {
    pause.begin(now);
    pauses.push_back(pause.next() - now);
    now = pause.next();
  }
  EXPECT_THAT(pauses, ElementsAre(250ms, 500ms, 1s, 2s, 4s, 5s, 5s, 5s));
  // One that has lived is replaced at once, and its successor soon.
  now += RestartPause::kHealthy;
  pause.begin(now);
  EXPECT_EQ(pause.next() - now, 250ms);
}

TEST(RateLimit, HoldsAFloodToTheRate) {
  using namespace std::chrono_literals;
  RateLimit limit;
  const RateLimit::TimePoint start{1h};
  int taken = 0;
  for (int i = 0; i < 10'000; ++i) taken += limit.take(start) ? 1 : 0;
  EXPECT_EQ(taken, RateLimit::kBurst);
  // A hundred thousand tries in the ten seconds after that.
  for (int i = 1; i <= 100'000; ++i) taken += limit.take(start + i * 100us) ? 1 : 0;
  EXPECT_EQ(taken, RateLimit::kBurst + 10 * RateLimit::kPerSecond);
  // After a pause there is a burst again, and no more.
  taken = 0;
  for (int i = 0; i < 10'000; ++i) taken += limit.take(start + 1h) ? 1 : 0;
  EXPECT_EQ(taken, RateLimit::kBurst);
}

TEST(RateLimit, DoesNotSlowOrdinaryUse) {
  using namespace std::chrono_literals;
  RateLimit limit;
  RateLimit::TimePoint now{1h};
  // Ten minutes of a crawler that opens as many as it may, evenly.
  for (int i = 0; i < 600 * RateLimit::kPerSecond; ++i) {
    now += 1'000'000us / RateLimit::kPerSecond;
    ASSERT_TRUE(limit.take(now)) << i;
  }
  // Every ten seconds a page with a thousand connections at once.
  for (int page = 0; page < 100; ++page) {
    now += 10s;
    for (int i = 0; i < 1000; ++i) ASSERT_TRUE(limit.take(now)) << page << " " << i;
  }
}

TEST(SocketCount, GreedySandboxesLeaveSomethingForTheNext) {
  SocketCount all{.used = 0, .most = 1000};
  std::vector<std::shared_ptr<SocketCount>> guests;
  std::vector<SocketLease> leases;
  for (int i = 0; i < 6; ++i) {
    guests.push_back(std::make_shared<SocketCount>(SocketCount{.used = 0, .most = 400}));
    while (auto lease = SocketLease::take(all, guests.back(), 2)) {
      leases.push_back(std::move(*lease));
    }
    EXPECT_GT(guests.back()->used, 0u);
    EXPECT_LE(guests.back()->used, 400u);
  }
  EXPECT_LE(all.used, all.most);
  leases.clear();
  EXPECT_EQ(all.used, 0u);
  EXPECT_EQ(guests[0]->used, 0u);
}

size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(all), end(all)));
}

TEST(Carrier, ASandboxGetsNoMoreThanItsPipes) {
  PipePool pool(100);
  PipeCount greedy{.used = 0, .most = 2};
  PipeCount other{.used = 0, .most = 2};
  const size_t before = open_descriptors();
  {
    std::vector<std::unique_ptr<Carrier>> carriers;
    for (int i = 0; i < 10; ++i) carriers.push_back(std::make_unique<Carrier>(pool, greedy));
    EXPECT_EQ(open_descriptors(), before + 2 * 2);
    carriers.push_back(std::make_unique<Carrier>(pool, other));
    EXPECT_EQ(open_descriptors(), before + 3 * 2);
  }
  // What the pool keeps for the next is counted for nobody, and no way around the bound.
  EXPECT_EQ(greedy.used, 0u);
  std::vector<std::unique_ptr<Carrier>> again;
  for (int i = 0; i < 10; ++i) again.push_back(std::make_unique<Carrier>(pool, greedy));
  EXPECT_EQ(greedy.used, 2u);
}

class CarrierKinds : public ::testing::TestWithParam<size_t> {};

TEST_P(CarrierKinds, CarryWholeStreams) {
  PipePool pool(GetParam());
  int in[2];
  int out[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, in), 0);
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, out), 0);
  const UniqueFd source(in[0]), from(in[1]), to(out[0]), sink(out[1]);
  const std::string sent(40'000, 's');
  ASSERT_EQ(::send(source.get(), sent.data(), sent.size(), 0), static_cast<ssize_t>(sent.size()));
  ::shutdown(source.get(), SHUT_WR);
  std::string received;
  PipeCount own{.used = 0, .most = 1};
  Carrier carrier(pool, own);
  for (;;) {
    const ssize_t got = carrier.fill(from.get());
    if (got == 0) break;
    ASSERT_GT(got, 0) << errno;
    while (!carrier.empty()) ASSERT_GT(carrier.drain(to.get()), 0) << errno;
    char buffer[65536];
    const ssize_t taken = ::recv(sink.get(), buffer, sizeof buffer, 0);
    ASSERT_GT(taken, 0);
    received.append(buffer, taken);
  }
  EXPECT_EQ(received, sent);
  EXPECT_EQ(carrier.fill(source.get()), -1);
  EXPECT_EQ(errno, EAGAIN);
}

// With a pipe, and from memory when there are none.
INSTANTIATE_TEST_SUITE_P(All, CarrierKinds, ::testing::Values(1, 0));

}  // namespace
}  // namespace alcove::relay

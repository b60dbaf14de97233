// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Datagrams and name servers through a real relay process, in network namespaces of the test.
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "relay/rate_limit.h"
#include "relay/testing/relay_fixture.h"

namespace alcove::relay::testing {
namespace {

using namespace std::chrono_literals;

bool arrives(const UniqueFd& fd, std::chrono::milliseconds patience) {
  pollfd waiting{fd.get(), POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
}

// Receives one datagram and sends this back.
std::string answer_one(const UniqueFd& server, std::string_view answer) {
  std::string datagram(65536, '\0');
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const ssize_t got = ::recvfrom(server.get(), datagram.data(), datagram.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
  if (got < 0) return "(nothing)";
  datagram.resize(got);
  ::sendto(server.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from),
           length);
  return datagram;
}

std::string receive_datagram(const UniqueFd& fd) {
  std::string datagram(65536, '\0');
  const ssize_t got = ::recv(fd.get(), datagram.data(), datagram.size(), 0);
  datagram.resize(got < 0 ? 0 : got);
  return got < 0 ? "(nothing)" : datagram;
}

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
    for (; opened < 2 * RateLimit::kBurst; ++opened) {
      const UniqueFd client(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      ASSERT_EQ(::sendto(client.get(), "x", 1, 0, reinterpret_cast<sockaddr*>(&address), length),
                1);
      if (!arrives(server, 1000ms)) return;
      EXPECT_EQ(answer_one(server, "!"), "x");
    }
  });
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  EXPECT_GE(opened, RateLimit::kBurst);
  EXPECT_LE(opened, RateLimit::kBurst + RateLimit::kPerSecond * took.count() + 1);
  // What was held back for a moment comes through.
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

class RelayNames : public RelayFixture {
 protected:
  void restart_with(std::vector<std::string> resolvers) {
    resolvers_ = std::move(resolvers);
    client_.reset();
    start_client();
    open_guest();
  }

  const network::Endpoint asked_ = endpoint("8.8.8.8", 53);
};

TEST_F(RelayNames, QuestionsAreLedToTheResolver) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  for (const char* question : {"one?", "two?"}) {
    ASSERT_TRUE(send_text(client, question));
    EXPECT_EQ(answer_one(server, "192.0.2.80"), question);
    EXPECT_EQ(receive_datagram(client), "192.0.2.80");
  }
}

TEST_F(RelayNames, WithoutAWordTheHostsFileCountsAsItIsNow) {
  const std::string file = data_dir_ + "/resolv.conf";
  std::ofstream(file) << "nameserver 198.51.100.53\n";
  before_start_ = [&] {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mount(file.c_str(), "/etc/resolv.conf", nullptr, MS_BIND, nullptr), 0);
  };
  ASSERT_TRUE(client_->stop());
  restart_with({});
  const auto ask = [&](const std::string& resolver, const std::string& question) {
    const UniqueFd server = bind_datagrams_in(net_->internet, endpoint(resolver, 53));
    const UniqueFd client = datagrams_in(net_->guest, asked_);
    ASSERT_TRUE(send_text(client, question));
    EXPECT_EQ(answer_one(server, "192.0.2.80"), question);
    EXPECT_EQ(receive_datagram(client), "192.0.2.80");
  };
  ask("198.51.100.53", "before?");
  // A machine that moved to another network; the relay is the same.
  const pid_t relay = client_->pid();
  std::ofstream(file) << "search example.com\nnameserver 198.51.100.54\n";
  ask("198.51.100.54", "after?");
  EXPECT_EQ(client_->pid(), relay);
}

TEST_F(RelayNames, TheResolverMayBeTheHostItself) {
  restart_with({"192.0.2.1"});
  const UniqueFd server = bind_datagrams_in(net_->host, endpoint("192.0.2.1", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, "name?"));
  EXPECT_EQ(answer_one(server, "there"), "name?");
  EXPECT_EQ(receive_datagram(client), "there");
  // Only as the name server, and only its port.
  const UniqueFd direct = datagrams_in(net_->guest, endpoint("192.0.2.1", 53));
  (void)send_text(direct, "name?");
  EXPECT_FALSE(arrives(server, 300ms));
}

TEST_F(RelayNames, TheNextResolverIsAskedWhenOneIsSilent) {
  restart_with({"203.0.113.9", "198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  for (const auto patience : {3000ms, 500ms}) {  // the silent one is not asked first again
    const UniqueFd client = datagrams_in(net_->guest, asked_);
    // Both questions of a program that asks for two kinds of address.
    ASSERT_TRUE(send_text(client, "A?"));
    ASSERT_TRUE(send_text(client, "AAAA?"));
    ASSERT_TRUE(arrives(server, patience));
    EXPECT_EQ(answer_one(server, "a"), "A?");
    EXPECT_EQ(answer_one(server, "b"), "AAAA?");
    EXPECT_EQ(receive_datagram(client), "a");
    EXPECT_EQ(receive_datagram(client), "b");
  }
}

TEST_F(RelayNames, TheOnlyResolverMayTakeItsTime) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, "name?"));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(server, "there"), "name?");
  EXPECT_EQ(receive_datagram(client), "there");
}

TEST_F(RelayNames, AskedResolversMayAnswerLate) {
  restart_with({"198.51.100.54", "198.51.100.53"});
  const UniqueFd first = bind_datagrams_in(net_->internet, endpoint("198.51.100.54", 53));
  const UniqueFd second = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, "name?"));
  ASSERT_TRUE(arrives(second, 5000ms));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(second, "there"), "name?");
  EXPECT_EQ(receive_datagram(client), "there");
  EXPECT_EQ(answer_one(first, "there too"), "name?");
  EXPECT_EQ(receive_datagram(client), "there too");
}

TEST_F(RelayNames, AResolverThatRefusesDoesNotSilenceASlowOne) {
  restart_with({"198.51.100.53", "198.51.100.54"});
  const UniqueFd slow = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, "name?"));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(slow, "there"), "name?");
  EXPECT_EQ(receive_datagram(client), "there");
}

TEST_F(RelayNames, QuestionsThatNobodyAnswersTakeLittleMemory) {
  restart_with({"203.0.113.9"});
  for (const size_t size : {60'000u, 4'000u}) {
    const size_t before = relay_peak_bytes();
    ASSERT_GT(before, 0u);
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(datagrams_in(net_->guest, asked_));
    // A small one opens the flow: first datagrams of all flows wait in one place.
    for (const UniqueFd& client : clients) ASSERT_TRUE(send_text(client, "?"));
    const std::string question(size, '?');
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(20ms);
      for (const UniqueFd& client : clients) ASSERT_TRUE(send_text(client, question));
    }
    std::this_thread::sleep_for(100ms);
    EXPECT_LT(relay_peak_bytes(), before + (16u << 20)) << size;
  }
}

TEST_F(RelayNames, ALargeQuestionIsAnsweredToo) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  for (const std::string& question : {std::string(10'000, '?'), std::string("small?")}) {
    ASSERT_TRUE(send_text(client, question));
    EXPECT_EQ(answer_one(server, "there"), question);
    EXPECT_EQ(receive_datagram(client), "there");
  }
}

TEST_F(RelayNames, AResolverThatRefusesCostsNoTime) {
  restart_with({"198.51.100.54", "198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, "name?"));
  ASSERT_TRUE(arrives(server, 1000ms));
  EXPECT_EQ(answer_one(server, "there"), "name?");
  EXPECT_EQ(receive_datagram(client), "there");
}

TEST_F(RelayNames, WorkOverTcpToo) {
  restart_with({"198.51.100.54", "198.51.100.53"});
  const UniqueFd listener = listen_in(net_->internet, endpoint("198.51.100.53", 53));
  const Attempt client = connect_in(net_->guest, asked_);
  ASSERT_EQ(client.error, 0);
  const UniqueFd server = accept_from(listener);
  ASSERT_TRUE(send_text(client.fd, "name?"));
  EXPECT_EQ(receive_text(server, 5), "name?");
}

}  // namespace
}  // namespace alcove::relay::testing

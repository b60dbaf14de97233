// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Name servers through a real relay process, in network namespaces of the test.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "relay/testing/datagrams.h"
#include "relay/testing/dns_messages.h"
#include "relay/testing/relay_fixture.h"

namespace alcove::relay::testing {
namespace {

using namespace std::chrono_literals;

class RelayNames : public RelayFixture {
 protected:
  void restart_with(std::vector<std::string> resolvers) {
    resolvers_ = std::move(resolvers);
    client_.reset();
    start_client();
    open_guest();
  }

  // What a program asks, and what the server answers.
  static std::string question(std::string_view name, uint16_t id = 1) {
    return dns_message({.name = name, .id = id});
  }
  static std::string answer(std::string_view text, uint16_t id = 1) {
    return dns_answer(question("", id), text);
  }

  const network::Endpoint asked_ = endpoint("8.8.8.8", 53);
};

TEST_F(RelayNames, QuestionsAreLedToTheResolver) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  for (const char* name : {"one", "two"}) {
    ASSERT_TRUE(send_text(client, question(name)));
    EXPECT_EQ(answer_one(server, answer("192.0.2.80")), question(name));
    EXPECT_EQ(receive_datagram(client), answer("192.0.2.80"));
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
  const auto ask = [&](const std::string& resolver, const std::string& name) {
    const UniqueFd server = bind_datagrams_in(net_->internet, endpoint(resolver, 53));
    const UniqueFd client = datagrams_in(net_->guest, asked_);
    ASSERT_TRUE(send_text(client, question(name)));
    EXPECT_EQ(answer_one(server, answer("192.0.2.80")), question(name));
    EXPECT_EQ(receive_datagram(client), answer("192.0.2.80"));
  };
  ask("198.51.100.53", "before");
  // A machine that moved to another network; the relay is the same.
  const pid_t relay = client_->pid();
  std::ofstream(file) << "search example.com\nnameserver 198.51.100.54\n";
  ask("198.51.100.54", "after");
  EXPECT_EQ(client_->pid(), relay);
}

TEST_F(RelayNames, TheResolverMayBeTheHostItself) {
  restart_with({"192.0.2.1"});
  const UniqueFd server = bind_datagrams_in(net_->host, endpoint("192.0.2.1", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("name")));
  EXPECT_EQ(answer_one(server, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
  // Only as the name server, and only its port.
  const UniqueFd direct = datagrams_in(net_->guest, endpoint("192.0.2.1", 53));
  (void)send_text(direct, question("name"));
  EXPECT_FALSE(arrives(server, 300ms));
}

TEST_F(RelayNames, TheNextResolverIsAskedWhenOneIsSilent) {
  restart_with({"203.0.113.9", "198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  for (const auto patience : {3000ms, 500ms}) {  // the silent one is not asked first again
    const UniqueFd client = datagrams_in(net_->guest, asked_);
    // Both questions of a program that asks for two kinds of address.
    const std::string a = dns_message({.name = "name", .type = kTypeA, .id = 1});
    const std::string aaaa = dns_message({.name = "name", .type = kTypeAaaa, .id = 2});
    ASSERT_TRUE(send_text(client, a));
    ASSERT_TRUE(send_text(client, aaaa));
    ASSERT_TRUE(arrives(server, patience));
    EXPECT_EQ(answer_one(server, answer("a", 1)), a);
    EXPECT_EQ(answer_one(server, answer("b", 2)), aaaa);
    EXPECT_EQ(receive_datagram(client), answer("a", 1));
    EXPECT_EQ(receive_datagram(client), answer("b", 2));
  }
}

TEST_F(RelayNames, TheOnlyResolverMayTakeItsTime) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("name")));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(server, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
}

TEST_F(RelayNames, AskedResolversMayAnswerLate) {
  restart_with({"198.51.100.54", "198.51.100.53"});
  const UniqueFd first = bind_datagrams_in(net_->internet, endpoint("198.51.100.54", 53));
  const UniqueFd second = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("name")));
  ASSERT_TRUE(arrives(second, 5000ms));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(second, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
  EXPECT_EQ(answer_one(first, answer("there too")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there too"));
}

TEST_F(RelayNames, AResolverThatRefusesDoesNotSilenceASlowOne) {
  restart_with({"198.51.100.53", "198.51.100.54"});
  const UniqueFd slow = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("name")));
  std::this_thread::sleep_for(2500ms);
  EXPECT_EQ(answer_one(slow, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
}

TEST_F(RelayNames, QuestionsThatNobodyAnswersTakeLittleMemory) {
  restart_with({"203.0.113.9"});
  for (const int size : {60'000, 4'000}) {
    const size_t before = relay_peak_bytes();
    ASSERT_GT(before, 0u);
    std::vector<UniqueFd> clients;
    for (int i = 0; i < 200; ++i) clients.push_back(datagrams_in(net_->guest, asked_));
    // A small one opens the flow: first datagrams of all flows wait in one place.
    for (const UniqueFd& client : clients) ASSERT_TRUE(send_text(client, question("")));
    const std::string large = dns_message({.name = "name", .padding = size});
    for (int i = 0; i < 8; ++i) {
      std::this_thread::sleep_for(20ms);
      for (const UniqueFd& client : clients) ASSERT_TRUE(send_text(client, large));
    }
    std::this_thread::sleep_for(100ms);
    EXPECT_LT(relay_peak_bytes(), before + (16u << 20)) << size;
  }
}

TEST_F(RelayNames, ALargeQuestionIsAnsweredToo) {
  restart_with({"198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  for (const int padding : {10'000, 0}) {
    const std::string padded = dns_message({.name = "name", .id = 1, .padding = padding});
    ASSERT_TRUE(send_text(client, padded));
    EXPECT_EQ(answer_one(server, answer("there")), padded);
    EXPECT_EQ(receive_datagram(client), answer("there"));
  }
}

TEST_F(RelayNames, AResolverThatRefusesCostsNoTime) {
  restart_with({"198.51.100.54", "198.51.100.53"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("name")));
  ASSERT_TRUE(arrives(server, 1000ms));
  EXPECT_EQ(answer_one(server, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
}

TEST_F(RelayNames, AnAnswerCountsForItsOwnQuestion) {
  restart_with({"198.51.100.53", "198.51.100.54", "198.51.100.55"});
  const UniqueFd first = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd second = bind_datagrams_in(net_->internet, endpoint("198.51.100.54", 53));
  const UniqueFd third = bind_datagrams_in(net_->internet, endpoint("198.51.100.55", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  ASSERT_TRUE(send_text(client, question("quick", 1)));
  ASSERT_TRUE(send_text(client, question("slow", 2)));
  ASSERT_TRUE(arrives(second, 5000ms));
  EXPECT_EQ(answer_one(first, answer("there", 1)), question("quick", 1));
  EXPECT_EQ(answer_one(second, answer("there", 1)), question("quick", 1));
  std::string asked;
  do {  // both, if this test was held up
    asked = answer_one(third, answer("there", 2));
  } while (asked == question("quick", 1));
  EXPECT_EQ(asked, question("slow", 2));
  for (const uint16_t id : {1, 1, 2}) EXPECT_EQ(receive_datagram(client), answer("there", id));
}

TEST_F(RelayNames, WhatIsNoQuestionDoesNotReachTheResolver) {
  // The first is not blamed for silence either.
  restart_with({"198.51.100.53", "198.51.100.54"});
  const UniqueFd server = bind_datagrams_in(net_->internet, endpoint("198.51.100.53", 53));
  const UniqueFd client = datagrams_in(net_->guest, asked_);
  const std::string update = dns_message({.name = "name", .opcode = 5});
  const std::string transfer = dns_message({.name = "name", .type = kTypeAxfr});
  const std::string cut = question("name").substr(0, 14);
  for (const auto& [message, code] : {std::pair(update, 5), {transfer, 5}, {cut, 1}}) {
    ASSERT_TRUE(send_text(client, message));
    const std::string refusal = receive_datagram(client);
    ASSERT_GE(refusal.size(), 12u);
    EXPECT_EQ(refusal.substr(0, 2), message.substr(0, 2));
    EXPECT_EQ(refusal[3], code);
  }
  ASSERT_TRUE(send_text(client, answer("there")));
  ASSERT_TRUE(send_text(client, "garbage"));
  EXPECT_FALSE(arrives(server, 2000ms));
  ASSERT_TRUE(send_text(client, question("name")));
  EXPECT_EQ(answer_one(server, answer("there")), question("name"));
  EXPECT_EQ(receive_datagram(client), answer("there"));
}

class RelayNamesByTcp : public RelayNames {
 protected:
  void SetUp() override {
    RelayNames::SetUp();
    if (!net_) return;
    restart_with({"198.51.100.54", "198.51.100.53"});
    listener_ = listen_in(net_->internet, endpoint("198.51.100.53", 53));
    connect();
  }

  void connect() {
    Attempt attempt = connect_in(net_->guest, asked_);
    ASSERT_EQ(attempt.error, 0);
    client_end_ = std::move(attempt.fd);
    server_end_ = accept_from(listener_);
  }

  UniqueFd listener_;
  UniqueFd client_end_;
  UniqueFd server_end_;
};

TEST_F(RelayNamesByTcp, QuestionsAndAnswersPass) {
  std::string stream;
  for (const int padding : {-1, 0, 400, 60'000}) {
    stream += with_length(dns_message({.name = "name.example", .padding = padding}));
  }
  ASSERT_TRUE(send_text(client_end_, stream));
  EXPECT_EQ(receive_text(server_end_, stream.size()), stream);
  const std::string answers(100'000, 'a');
  auto sent = std::async(std::launch::async, [&] { return send_text(server_end_, answers); });
  EXPECT_EQ(receive_text(client_end_, answers.size()), answers);
  EXPECT_TRUE(sent.get());
  // A program that has asked all waits for the rest of the answers.
  ::shutdown(client_end_.get(), SHUT_WR);
  EXPECT_EQ(receive_text(server_end_, 1), "");
  ASSERT_TRUE(send_text(server_end_, "more"));
  EXPECT_EQ(receive_text(client_end_, 4), "more");
}

TEST_F(RelayNamesByTcp, AnythingElseEndsTheConnection) {
  const std::string good = with_length(question("name"));
  for (const std::string& bad : {with_length(dns_message({.name = "name", .type = kTypeAxfr})),
                                 with_length(dns_message({.name = "name", .opcode = 5})),
                                 "GET / HTTP/1.1\r\n" + std::string(1000, 'x')}) {
    ASSERT_TRUE(send_text(client_end_, good));
    EXPECT_EQ(receive_text(server_end_, good.size()), good);
    ASSERT_TRUE(send_text(client_end_, bad));
    EXPECT_EQ(receive_text(client_end_, 1), cat("(error ", ECONNRESET, ")"));
    EXPECT_EQ(receive_text(server_end_, 1), cat("(error ", ECONNRESET, ")"));
    connect();
  }
}

}  // namespace
}  // namespace alcove::relay::testing

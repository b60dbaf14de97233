// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// TCP through a real relay process, in network namespaces of the test.
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <future>
#include <regex>
#include <string>
#include <thread>
#include <vector>

#include "base/sanitized.h"
#include "relay/testing/relay_fixture.h"

namespace alcove::relay::testing {
namespace {

using namespace std::chrono_literals;
using Reach = network::EgressPolicy::Reach;

class RelayTcp : public RelayFixture {};

TEST_F(RelayTcp, ConnectsAndCarriesBothWays) {
  open_guest();
  for (const char* address : {"198.51.100.7", "2001:db8:1::7"}) {
    const auto to = endpoint(address, 80);
    const UniqueFd listener = listen_in(net_->internet, to);
    const Attempt attempt = connect_in(net_->guest, to);
    ASSERT_EQ(attempt.error, 0) << address;
    const UniqueFd server = accept_from(listener);
    ASSERT_TRUE(server.valid());
    ASSERT_TRUE(send_text(attempt.fd, "question"));
    EXPECT_EQ(receive_text(server, 8), "question");
    ASSERT_TRUE(send_text(server, "answer"));
    EXPECT_EQ(receive_text(attempt.fd, 6), "answer");
  }
}

TEST_F(RelayTcp, FailuresLookAsOnARealNetwork) {
  open_guest();
  for (const char* address : {"198.51.100.7", "2001:db8:1::7"}) {
    const Attempt refused = connect_in(net_->guest, endpoint(address, 81));
    EXPECT_EQ(refused.error, ECONNREFUSED) << address;
    EXPECT_LT(refused.took, 1s);
  }
  for (const char* address : {"203.0.113.200", "8.8.4.4", "2606:4700::1"}) {
    const Attempt unreachable = connect_in(net_->guest, endpoint(address, 80));
    EXPECT_EQ(unreachable.error, EHOSTUNREACH) << address;
    EXPECT_LT(unreachable.took, 1s);
  }
  EXPECT_EQ(connect_in(net_->guest, endpoint("203.0.113.1", 80), 500ms).error, ETIMEDOUT);
}

TEST_F(RelayTcp, HostAndPrivateAddressesAreRefused) {
  open_guest();
  // Something listens on every address of the host: only the relay is in the way.
  const UniqueFd v4 = listen_in(net_->host, endpoint("0.0.0.0", 80));
  const UniqueFd v6 = listen_in(net_->host, endpoint("::", 81));
  for (const char* address :
       {"192.0.2.1", "192.0.2.255", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254",
        "100.64.0.1", "0.0.0.1", "198.18.0.1", "224.0.0.1", "255.255.255.255"}) {
    const Attempt attempt = connect_in(net_->guest, endpoint(address, 80));
    EXPECT_NE(attempt.error, 0) << address;
    EXPECT_NE(attempt.error, ETIMEDOUT) << address;
  }
  for (const char* address :
       {"2001:db8::1", "fd12::1", "64:ff9b::192.0.2.1", "64:ff9b::10.0.0.1", "2002:c000:201::1"}) {
    const Attempt attempt = connect_in(net_->guest, endpoint(address, 81));
    EXPECT_NE(attempt.error, 0) << address;
    EXPECT_NE(attempt.error, ETIMEDOUT) << address;
  }
  // An address that the host gets later is its own at once.
  EXPECT_EQ(connect_in(net_->guest, endpoint("198.51.100.9", 80)).error, ECONNREFUSED);
  net_->host.shell("ip addr add 198.51.100.9/32 dev lo");
  EXPECT_EQ(connect_in(net_->guest, endpoint("198.51.100.9", 80)).error, EHOSTUNREACH);
}

TEST_F(RelayTcp, WithoutInternetEverythingIsRefusedAtOnce) {
  open_guest(Reach::kNone);
  const UniqueFd listener = listen_in(net_->internet, endpoint("198.51.100.7", 80));
  for (const char* address : {"198.51.100.7", "8.8.8.8", "2001:db8:1::7", "10.0.0.1"}) {
    const Attempt attempt = connect_in(net_->guest, endpoint(address, 80));
    EXPECT_EQ(attempt.error, EHOSTUNREACH) << address;
    EXPECT_LT(attempt.took, 1s);
  }
  const UniqueFd question = datagrams_in(net_->guest, endpoint("8.8.8.8", 53));
  (void)send_text(question, "name?");
  EXPECT_EQ(receive_text(question, 1), "(error 113)");  // EHOSTUNREACH
}

TEST_F(RelayTcp, HalvesEndOnTheirOwn) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  const Attempt client = connect_in(net_->guest, to);
  ASSERT_EQ(client.error, 0);
  const UniqueFd server = accept_from(listener);
  const std::string up(3'000'000, 'u');
  const std::string down(2'000'000, 'd');
  auto sent = std::async(std::launch::async, [&] {
    const bool all = send_text(client.fd, up);
    ::shutdown(client.fd.get(), SHUT_WR);
    return all;
  });
  EXPECT_EQ(receive_text(server, up.size() + 1), up);
  EXPECT_TRUE(sent.get());
  auto answered = std::async(std::launch::async, [&] {
    const bool all = send_text(server, down);
    ::shutdown(server.get(), SHUT_WR);
    return all;
  });
  EXPECT_EQ(receive_text(client.fd, down.size() + 1), down);
  EXPECT_TRUE(answered.get());
}

TEST_F(RelayTcp, ResetsArePassedOn) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  const auto reset = [](UniqueFd fd) {
    const linger now{1, 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  };
  Attempt client = connect_in(net_->guest, to);
  reset(accept_from(listener));
  EXPECT_EQ(receive_text(client.fd, 1), "(error 104)");  // ECONNRESET
  client = connect_in(net_->guest, to);
  const UniqueFd server = accept_from(listener);
  reset(std::move(client.fd));
  EXPECT_EQ(receive_text(server, 1), "(error 104)");
}

TEST_F(RelayTcp, AThousandAtOnce) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  std::vector<Attempt> clients;
  std::vector<UniqueFd> servers;
  for (int i = 0; i < 1000; ++i) {
    clients.push_back(connect_in(net_->guest, to));
    ASSERT_EQ(clients.back().error, 0) << i;
    servers.push_back(accept_from(listener));
    ASSERT_TRUE(servers.back().valid()) << i;
  }
  const size_t idle = relay_descriptors();
  EXPECT_LT(idle, 2000u + 200u);
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(send_text(clients[i].fd, cat("client ", i, ".")));
  for (int i = 0; i < 1000; ++i) {
    const std::string text = cat("client ", i, ".");
    ASSERT_EQ(receive_text(servers[i], text.size()), text);
  }
  clients.clear();
  servers.clear();
  EXPECT_TRUE(eventually([&] { return relay_descriptors() < 150; })) << relay_descriptors();
}

TEST_F(RelayTcp, ASandboxGetsNoMoreThanItsShare) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  std::vector<UniqueFd> ends;
  size_t made = 0;
  int error = 0;
  for (; made < 2100 && error == 0; ++made) {
    Attempt attempt = connect_in(net_->guest, to);
    error = attempt.error;
    ends.push_back(std::move(attempt.fd));
    if (error == 0) ends.push_back(accept_from(listener));
  }
  EXPECT_EQ(error, ECONNREFUSED);
  EXPECT_EQ(made - 1, 2048u);
  // The others have what they had, and there is room again when one ends.
  TestNamespace neighbour;
  neighbour.run([] { prepare_guest_network(); });
  const SandboxId other = make_sandbox_id();
  ASSERT_TRUE(
      client_->finish_open(client_->begin_open(other, {Reach::kInternet}, neighbour.shared())));
  EXPECT_EQ(connect_in(neighbour, to).error, 0);
  ends.clear();
  EXPECT_TRUE(eventually([&] { return connect_in(net_->guest, to).error == 0; }));
}

TEST_F(RelayTcp, ManyConnectionsShareTheirBuffers) {
  // What the kernel gives, it gives at once.
  for (const TestNamespace* where : {&net_->host, &net_->guest}) {
    where->shell(
        "echo 4096 4000000 4000000 | tee /proc/sys/net/ipv4/tcp_rmem "
        "> /proc/sys/net/ipv4/tcp_wmem");
  }
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  std::vector<UniqueFd> ends;
  for (int i = 0; i < 100; ++i) {
    ends.push_back(connect_in(net_->guest, to).fd);
    ends.push_back(accept_from(listener));
    // One after the other: the relay has both sides when something arrives.
    ASSERT_TRUE(send_text(ends[2 * i], "x"));
    ASSERT_EQ(receive_text(ends[2 * i + 1], 1), "x");
  }
  const std::string sockets = "ss -Htnm state established ";
  for (const std::string& seen : {net_->host.output_of(sockets + "dst 198.51.100.7"),
                                  net_->guest.output_of(sockets + "src 198.51.100.7")}) {
    const std::regex buffers("rb([0-9]+),t[0-9]+,tb([0-9]+)");
    size_t free = 0;
    size_t bounded = 0;
    for (std::sregex_iterator at(seen.begin(), seen.end(), buffers), end; at != end; ++at) {
      const size_t receive = parse_number<size_t>((*at)[1].str()).value_or(0);
      const size_t send = parse_number<size_t>((*at)[2].str()).value_or(0);
      // The kernel doubles what it is asked for.
      if (receive >= 4'000'000 && send >= 4'000'000) ++free;
      if (receive < 600'000 && send < 600'000) ++bounded;
    }
    EXPECT_EQ(free, 64u) << seen;
    EXPECT_EQ(bounded, 36u) << seen;
  }
}

TEST_F(RelayTcp, AFloodToNowhereLeavesOtherDestinationsFree) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  std::vector<Attempt> flood;
  for (uint16_t i = 0; i < 700; ++i) {
    flood.push_back(connect_in(net_->guest, endpoint("203.0.113.5", 1000 + i), 0ms));
  }
  const Attempt good = connect_in(net_->guest, to);
  EXPECT_EQ(good.error, 0);
  EXPECT_LT(good.took, 500ms);
  EXPECT_LT(relay_descriptors(), 256u + 100u);
}

TEST_F(RelayTcp, AListenerThatTheSandboxKilledComesBack) {
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  const std::string socket = "ss -Htnle 'sport = 49982'";
  const std::string first = net_->guest.output_of(socket);
  ASSERT_NE(first, "");
  // It says EINVAL for what it cannot end, after it has ended the rest.
  net_->guest.output_of("ss -K state listening 'sport = 49982' 2>&1");
  ASSERT_NE(net_->guest.output_of(socket), first);
  // The kernel tells the relay; it opens the next one after a pause and does not spin meanwhile.
  EXPECT_TRUE(eventually([&] { return connect_in(net_->guest, to, 1s).error == 0; }));
  const auto before = relay_cpu();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(relay_cpu() - before, 100ms);
}

TEST_F(RelayTcp, ConnectionsWithoutAQueuedPacketAreDialledToo) {
  // As on a kernel without queues, and as a sandbox can do it to itself.
  net_->guest = TestNamespace();
  net_->guest.run([] { prepare_guest_network(Queue::kNone); });
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  const Attempt client = connect_in(net_->guest, to);
  ASSERT_EQ(client.error, 0);
  const UniqueFd server = accept_from(listener);
  ASSERT_TRUE(send_text(client.fd, "hello"));
  EXPECT_EQ(receive_text(server, 5), "hello");
  // The reset follows the handshake at once: a client that looks late is told by connect() already,
  // and an error is told only once.
  const Attempt refused = connect_in(net_->guest, endpoint("192.0.2.1", 80));
  if (refused.error != 0) {
    EXPECT_EQ(refused.error, ECONNRESET);
  } else {
    EXPECT_EQ(receive_text(refused.fd, 1), "(error 104)");
  }
}

class LateDials : public RelayFixture {
 protected:
  void SetUp() override {
    RelayFixture::SetUp();
    if (!net_) return;
    net_->guest = TestNamespace();
    net_->guest.run([] { prepare_guest_network(Queue::kNone); });
    open_guest();
    before_ = relay_descriptors();
  }

  // The program is connected, and the relay waits for an address that does not answer.
  UniqueFd dial_nowhere() {
    Attempt client = connect_in(net_->guest, endpoint("203.0.113.1", 80));
    EXPECT_EQ(client.error, 0);
    EXPECT_TRUE(eventually([&] { return relay_descriptors() == before_ + 2; }));
    return std::move(client.fd);
  }

  size_t before_ = 0;
};

TEST_F(LateDials, EndWithTheProgramThatGaveUp) {
  UniqueFd client = dial_nowhere();
  // What it had sent already does not hide its end.
  ASSERT_TRUE(send_text(client, "question"));
  const linger now{1, 0};
  ::setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  client.reset();
  EXPECT_TRUE(eventually([&] { return relay_descriptors() == before_; })) << relay_descriptors();
}

TEST_F(LateDials, GoOnForAProgramThatHasSaidAll) {
  const UniqueFd client = dial_nowhere();
  ::shutdown(client.get(), SHUT_WR);
  std::this_thread::sleep_for(2s);
  EXPECT_EQ(relay_descriptors(), before_ + 2);
  // Nobody waits for ever for an answer.
  EXPECT_TRUE(eventually([&] { return relay_descriptors() == before_; }, 15s));
}

TEST_F(LateDials, EndWithTheSandbox) {
  const UniqueFd client = dial_nowhere();
  client_->close(id_);
  EXPECT_EQ(receive_text(client, 1), "(error 104)");  // ECONNRESET
  EXPECT_TRUE(eventually([&] { return relay_descriptors() == before_ - 4; }))
      << relay_descriptors();
}

TEST_F(RelayTcp, WithoutDescriptorsNewFlowsAreRefusedAndTheRestGoesOn) {
  if constexpr (kSanitized) {
    GTEST_SKIP() << "the sanitizer needs a pipe to look at a type, and takes its lack for a fault";
  }
  open_guest();
  const auto to = endpoint("198.51.100.7", 80);
  const UniqueFd listener = listen_in(net_->internet, to);
  const Attempt kept = connect_in(net_->guest, to);
  const UniqueFd server = accept_from(listener);
  const pid_t relay = client_->pid();
  rlimit normal{};
  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, nullptr, &normal), 0);
  const rlimit low{.rlim_cur = relay_descriptors(), .rlim_max = normal.rlim_max};
  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, &low, nullptr), 0);
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(connect_in(net_->guest, endpoint("198.51.100.7", 80), 100ms).error, 0);
  }
  // Servers are answered as ever, if only that there is no room.
  const auto begin = std::chrono::steady_clock::now();
  TestNamespace neighbour;
  neighbour.run([] { prepare_guest_network(); });
  const SandboxId other = make_sandbox_id();
  const auto opened =
      client_->finish_open(client_->begin_open(other, {Reach::kInternet}, neighbour.shared()));
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code(), Code::kResourceExhausted) << opened.error().message();
  EXPECT_TRUE(client_->keep_only({id_, other}));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(client_->pid(), relay);
  // What was there works, and nothing spins.
  ASSERT_TRUE(send_text(kept.fd, "still"));
  EXPECT_EQ(receive_text(server, 5), "still");
  const auto cpu = relay_cpu();
  std::this_thread::sleep_for(500ms);
  EXPECT_LT(relay_cpu() - cpu, 100ms);

  ASSERT_EQ(::prlimit(relay, RLIMIT_NOFILE, &normal, nullptr), 0);
  EXPECT_TRUE(eventually([&] { return connect_in(net_->guest, to).error == 0; }));
  EXPECT_TRUE(
      client_->finish_open(client_->begin_open(other, {Reach::kInternet}, neighbour.shared())));
  EXPECT_EQ(connect_in(neighbour, to).error, 0);
  EXPECT_EQ(client_->pid(), relay);
}

}  // namespace
}  // namespace alcove::relay::testing

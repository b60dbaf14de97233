// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// Finding and ending sandboxes, access, connections and tunnels.

#include <gmock/gmock.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "gateway/testing/gateway_fixture.h"
#include "net/testing/loop_runner.h"
#include "net/testing/tls_identity.h"
#include "net/tls_stream.h"

namespace alcove::gateway {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

constexpr char kNotFound[] =
    R"({"sandboxId":"ione","message":"The sandbox was not found","code":502})";

constexpr char kHello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

class GatewayLifeTest : public GatewayTest {
 protected:
  // One exchange over `service`, as the service plays it.
  void exchange(RawPeer& client, RawPeer& service, const std::string& sent) {
    client.send(sent);
    service.read_until("\r\n\r\n");
    service.send(kHello);
    client.read_until("hello");
  }
};

TEST_F(GatewayLifeTest, AnUnknownSandboxIsNotFound) {
  RawPeer client = connect();
  client.send(request("GET /health", kAgentPort, "", SandboxId("inobody")));
  const std::string page = client.read_until("}");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 502 "));
  EXPECT_THAT(page, HasSubstr("Content-Type: application/json; charset=utf-8\r\n"));
  EXPECT_THAT(
      page,
      EndsWith(R"({"sandboxId":"inobody","message":"The sandbox was not found","code":502})"));
}

TEST_F(GatewayLifeTest, ASandboxThatWasNotTakenOverYetIsNotSaidToBeGone) {
  const SandboxId unclear("iunclear");
  node_.unclear = {unclear};
  RawPeer client = connect();
  client.send(request("GET /health", 8000, "", unclear));
  const std::string page = client.read_until("}");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(page, HasSubstr("Retry-After: 1\r\n"));
  EXPECT_THAT(page, HasSubstr("could not be taken over yet"));
}

TEST_F(GatewayLifeTest, RefusalsOfTheRouterAreText) {
  RawPeer client = connect();
  client.send("GET / HTTP/1.1\r\nHost: localhost\r\nE2b-Sandbox-Id: ione\r\n\r\n");
  const std::string page = client.read_until("missing header");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(page, HasSubstr("Content-Type: text/plain"));
}

TEST_F(GatewayLifeTest, KillCutsStreamsAtOnceAndThen502) {
  RawPeer client = connect();
  client.send(request("POST /process.Process/Start", kAgentPort));
  RawPeer agent = service_.accept();
  agent.read_until("\r\n\r\n");
  agent.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  client.read_until("one\r\n");

  one_->kill();
  std::string rest;
  EXPECT_EQ(client.read_to_end(&rest), RawPeer::End::kReset);
  EXPECT_EQ(rest, "");
  agent.read_to_end();

  RawPeer again = connect();
  again.send(request("GET /health", kAgentPort));
  EXPECT_THAT(again.read_until("}"), EndsWith(kNotFound));
}

TEST_F(GatewayLifeTest, KillCutsAlsoAClientThatDoesNotRead) {
  RawPeer client = connect();
  client.send(request("GET /big"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
  service.send_until_blocked(/*quiet_ms=*/200, /*most=*/200'000'000);
  one_->kill();
  EXPECT_EQ(service.read_to_end(), RawPeer::End::kReset);
  EXPECT_EQ(client.read_to_end(), RawPeer::End::kReset);
}

TEST_F(GatewayLifeTest, KillBeforeTheAnswerIs502) {
  RawPeer client = connect();
  client.send(request("POST /slow", kServicePort, "Transfer-Encoding: chunked\r\n") +
              "3\r\none\r\n");
  RawPeer service = service_.accept();
  service.read_until("one\r\n");
  one_->kill();
  EXPECT_THAT(client.read_until("}"), EndsWith(kNotFound));
}

TEST_F(GatewayLifeTest, ADyingProcessIsNoEndOfABodyThatEndsByClosing) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\n\r\nhel");
  client.read_until("hel");
  // As in a kill: the processes die before the gateway is told.
  one_->mark_dead();
  service.close();
  std::string rest;
  EXPECT_EQ(client.read_to_end(&rest), RawPeer::End::kReset);
  EXPECT_THAT(rest, Not(HasSubstr("0\r\n")));
}

TEST_F(GatewayLifeTest, KillEndsOnlyThatSandboxsStreams) {
  RawPeer client = connect();
  client.send(request("GET /x", kServicePort, "", kTwo));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfo");
  client.read_until("fo");
  one_->kill();
  service.send("ur");
  client.read_until("ur");
}

TEST_F(GatewayLifeTest, ConnectionsAreReusedWithinASandboxOnly) {
  RawPeer client = connect();
  client.send(request("GET /1", kAgentPort));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");

  exchange(client, first, request("POST /2", kAgentPort));
  // Same loop, same real port, another sandbox.
  client.send(request("GET /3", kAgentPort, "", kTwo));
  RawPeer second = service_.accept();
  EXPECT_THAT(second.read_until("\r\n\r\n"), HasSubstr("itwo"));
  second.send(kHello);
  client.read_until("hello");
  // And another port of the first one.
  client.send(request("GET /4"));
  RawPeer third = service_.accept();
  third.read_until("\r\n\r\n");
  third.send(kHello);
  client.read_until("hello");

  exchange(client, first, request("GET /5", kAgentPort));
  exchange(client, second, request("GET /6", kAgentPort, "", kTwo));
  wait_for_idle(3);
  one_->kill();
  first.read_to_end();
  third.read_to_end();
  wait_for_idle(1);
}

TEST_F(GatewayLifeTest, WhatAServiceSaysUnaskedIsNobodysAnswer) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");
  wait_for_idle(1);
  first.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
  RawPeer other = connect();
  other.send(request("GET /2"));
  RawPeer second = service_.accept();
  second.read_until("\r\n\r\n");
  second.send(kHello);
  EXPECT_THAT(other.read_until("\r\n\r\nhello"), Not(HasSubstr("poison")));
}

TEST_F(GatewayLifeTest, WhatCannotBeRepeatedGetsAFreshConnectionToAService) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");

  client.send(request("POST /2"));
  RawPeer second = service_.accept();
  second.read_until("\r\n\r\n");
  second.send(kHello);
  client.read_until("hello");
}

TEST_F(GatewayLifeTest, AKeptConnectionThatTheServiceClosedIsNotUsed) {
  RawPeer client = connect();
  client.send(request("POST /1", kAgentPort));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");
  first.close();

  client.send(request("POST /2", kAgentPort));
  RawPeer second = service_.accept();
  second.read_until("\r\n\r\n");
  second.send(kHello);
  client.read_until("hello");
}

TEST_F(GatewayLifeTest, AKeptConnectionThatDiesUnderARequestIsReplacedOnce) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");

  client.send(request("GET /2"));
  EXPECT_THAT(first.read_until("\r\n\r\n"), StartsWith("GET /2 "));
  first.close();
  RawPeer second = service_.accept();
  EXPECT_THAT(second.read_until("\r\n\r\n"), StartsWith("GET /2 "));
  // A fresh connection that dies is the service's fault.
  second.close();
  EXPECT_THAT(client.read_until("}"), HasSubstr("without an answer"));
  EXPECT_FALSE(service_.has_connection(50));
}

TEST_F(GatewayLifeTest, ABrokenAnswerOnAKeptConnectionIsNotAskedForAgain) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer service = service_.accept();
  exchange(client, service, "");
  client.send(request("GET /2"));
  service.read_until("\r\n\r\n");
  service.send("nonsense\r\n\r\n");
  EXPECT_THAT(client.read_until("}"), HasSubstr("not valid HTTP"));
  EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed);
  EXPECT_FALSE(service_.has_connection(50));
}

TEST_F(GatewayLifeTest, TrafficTokenIsDemandedAndPassedOn) {
  store::Sandbox record;
  record.id = SandboxId("iguarded");
  record.traffic_token = "sesame";
  const auto guarded = std::make_shared<FakeSandbox>(std::move(record));
  guarded->open_port(kServicePort, service_.port());
  guarded->open_port(kAgentPort, service_.port());
  on_loop([&] {
    node_.add(guarded);
    return 0;
  });
  const SandboxId id("iguarded");

  RawPeer client = connect();
  client.send(request("GET /", kServicePort, "", id));
  EXPECT_THAT(client.read_until("}"), HasSubstr("is missing"));
  client.send(request("GET /", kServicePort, "e2b-traffic-access-token: sesamo\r\n", id));
  EXPECT_THAT(client.read_until("}"), HasSubstr("is invalid"));
  EXPECT_EQ(guarded->connects(), 0);
  client.send(request("GET /", kServicePort, "e2b-traffic-access-token: sesame\r\n", id));
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\n"), HasSubstr("e2b-traffic-access-token: sesame\r\n"));
  service.send(kHello);
  client.read_until("hello");
  client.send(request("GET /health", kAgentPort, "", id));
  service_.accept().read_until("\r\n\r\n");
}

TEST_F(GatewayLifeTest, ControlCallsDoNotReachTheAgent) {
  RawPeer client = connect();
  for (const char* target : {"/init", "//init", "/./init", "/%69nit", "/x/../init", "/init/",
                             "/freeze?mode=legacy", "/upgrade", "/init#", "/journal"}) {
    client.send(request(cat("POST ", target), kAgentPort));
    const std::string page = client.read_until("\"code\":404}");
    EXPECT_THAT(page, StartsWith("HTTP/1.1 404 ")) << target;
    EXPECT_THAT(page, Not(HasSubstr("ione"))) << target;
  }
  client.send("POST http://49983-ione.example.org/init HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_until("\"code\":404}"), StartsWith("HTTP/1.1 404 "));
  EXPECT_EQ(one_->connects(), 0);
  EXPECT_FALSE(service_.has_connection(20));
}

TEST_F(GatewayLifeTest, TunnelsCarryBothWaysAndHalfClose) {
  RawPeer client = connect();
  client.send(request("GET /ws", kServicePort,
                      "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: k\r\n"));
  RawPeer service = service_.accept();
  const std::string head = service.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("Upgrade: websocket\r\n"));
  EXPECT_THAT(head, HasSubstr("Connection: Upgrade\r\n"));
  EXPECT_THAT(head, HasSubstr("Sec-WebSocket-Key: k\r\n"));
  // The first frame comes in the same packet as the head.
  service.send(
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Sec-WebSocket-Accept: a\r\n\r\nwelcome");
  const std::string answer = client.read_until("\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 101 "));
  EXPECT_THAT(answer, HasSubstr("Upgrade: websocket\r\n"));
  EXPECT_THAT(answer, HasSubstr("Sec-WebSocket-Accept: a\r\n"));
  EXPECT_THAT(answer, Not(HasSubstr("Content-Length")));
  EXPECT_EQ(client.read_bytes(7), "welcome");
  for (int i = 0; i < 3; ++i) {
    client.send("ping");
    EXPECT_EQ(service.read_bytes(4), "ping");
    service.send("pong");
    EXPECT_EQ(client.read_bytes(4), "pong");
  }
  client.shutdown_write();
  EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed);
  service.send("last words");
  EXPECT_EQ(client.read_bytes(10), "last words");
  service.close();
  EXPECT_EQ(client.read_to_end(), RawPeer::End::kClosed);
}

TEST_F(GatewayLifeTest, ASilentStreamGivesTheBufferOfItsLastBurstBack) {
  replace_gateway({.silence = std::chrono::milliseconds(30)});
  const auto wait_for_large = [&](size_t count) {
    while (on_loop([this] { return gateway_->large_buffers(); }) != count) {
      std::this_thread::yield();
    }
  };
  const auto burst = [&](RawPeer& from, RawPeer& to) {
    const std::string sent = cat(std::string(99'999, 'x'), "!");
    do {
      from.send(sent);
      EXPECT_EQ(to.read_bytes(sent.size()), sent);
    } while (on_loop([this] { return gateway_->large_buffers(); }) == 0);
  };
  // As often as it likes, and nothing is lost.
  const auto check = [&](RawPeer& from, RawPeer& to) {
    for (int i = 0; i < 2; ++i) {
      burst(from, to);
      wait_for_large(0);
      from.send("ping");
      EXPECT_EQ(to.read_bytes(4), "ping");
    }
  };
  RawPeer client = connect();
  client.send(request("GET /down"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
  client.read_until("\r\n\r\n");
  check(service, client);

  client = connect();
  client.send(request("POST /up", kServicePort, "Content-Length: 1000000000\r\n"));
  service = service_.accept();
  service.read_until("\r\n\r\n");
  check(client, service);

  client = connect();
  client.send(request("GET /both", kServicePort, "Connection: Upgrade\r\nUpgrade: x\r\n"));
  service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  client.read_until("\r\n\r\n");
  check(client, service);
  check(service, client);
}

TEST_F(GatewayLifeTest, ATunnelIsAskedForUnderTheMaskedHost) {
  const SandboxId id("imasked");
  const auto masked = make_sandbox(id, R"({"maskRequestHost":"dev.local:${PORT}"})");
  masked->open_port(kServicePort, service_.port());
  on_loop([&] { node_.add(masked); });
  RawPeer client = connect();
  client.send(
      request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: websocket\r\n", id));
  RawPeer service = service_.accept();
  const std::string head = service.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nHost: dev.local:8000\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nX-Forwarded-Host: 8000-imasked.example.org\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nUpgrade: websocket\r\n"));
  service.send("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst");
  client.read_until("\r\n\r\nfirst");
  client.send("ping");
  EXPECT_EQ(service.read_bytes(4), "ping");
}

// Plays the service's end of a TLS connection, on a loop of the test's own.
class TlsPeer {
 public:
  explicit TlsPeer(const RawPeer& accepted)
      : stream_(loop_.get_executor(), UniqueFd(::dup(accepted.fd())),
                net::testing::make_identity()) {}

  std::string read_until(std::string_view mark) {
    std::string all;
    std::array<char, 1> byte;
    while (!all.ends_with(mark)) {
      const auto count = net::testing::run(loop_, stream_.read_some(byte));
      if (!count || *count == 0) throw std::runtime_error("the TLS connection ended after " + all);
      all.push_back(byte[0]);
    }
    return all;
  }
  void send(std::string_view data) { (void)net::testing::run(loop_, stream_.write(data)); }

 private:
  boost::asio::io_context loop_;
  net::TlsStream stream_;
};

TEST_F(GatewayLifeTest, ATunnelToAServiceThatSpeaksTls) {
  const SandboxId id("itls");
  const auto sandbox = make_sandbox(id, R"({"httpsPorts":[8000],"maskRequestHost":"dev.local"})");
  sandbox->open_port(kServicePort, service_.port());
  on_loop([&] { node_.add(sandbox); });
  RawPeer client = connect();
  client.send(
      request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: websocket\r\n", id));
  const RawPeer accepted = service_.accept();
  TlsPeer service(accepted);
  const std::string head = service.read_until("\r\n\r\n");
  EXPECT_THAT(head, HasSubstr("\r\nHost: dev.local\r\n"));
  EXPECT_THAT(head, HasSubstr("\r\nUpgrade: websocket\r\n"));
  service.send("HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nfirst");
  EXPECT_THAT(client.read_until("\r\n\r\nfirst"), StartsWith("HTTP/1.1 101 "));
  for (int i = 0; i < 3; ++i) {
    client.send("ping");
    EXPECT_EQ(service.read_until("ping"), "ping");
    service.send("pong");
    EXPECT_EQ(client.read_bytes(4), "pong");
  }
}

TEST_F(GatewayLifeTest, AServiceWithoutTheTlsOfItsPortIsToldFromAClosedOne) {
  const SandboxId id("itls");
  const auto sandbox = make_sandbox(id, R"({"httpsPorts":[8000]})");
  sandbox->open_port(kServicePort, service_.port());
  on_loop([&] { node_.add(sandbox); });
  RawPeer client = connect();
  for (const char* more : {"", "Connection: Upgrade\r\nUpgrade: websocket\r\n"}) {
    client.send(request("GET /", kServicePort, more, id));
    RawPeer service = service_.accept();
    service.send("HTTP/1.1 400 Bad Request\r\n\r\n");
    EXPECT_THAT(client.read_until("}"),
                EndsWith(R"({"sandboxId":"itls","message":"The service in the sandbox does not )"
                         R"(speak TLS, but its port is in httpsPorts","port":8000,"code":502})"));
  }
}

TEST_F(GatewayLifeTest, TunnelsAreCutByKillAndByReset) {
  for (const bool kill : {false, true}) {
    RawPeer client = connect();
    client.send(request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: x\r\n"));
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
    service.send("HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n");
    client.read_until("\r\n\r\n");
    client.send("ping");
    service.read_bytes(4);
    if (kill) {
      one_->kill();
    } else {
      service.reset();
    }
    EXPECT_EQ(client.read_to_end(), RawPeer::End::kReset);
  }
}

TEST_F(GatewayLifeTest, ATunnelWithOneEndClosedAndTheOtherSilentEnds) {
  replace_gateway({.tunnel_linger = std::chrono::milliseconds(50)});
  for (const bool client_first : {true, false}) {
    RawPeer client = connect();
    client.send(request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: x\r\n"));
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
    service.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
    client.read_until("\r\n\r\n");
    // With both ends open nobody minds silence.
    EXPECT_TRUE(client.is_silent(150));
    RawPeer& first = client_first ? client : service;
    RawPeer& silent = client_first ? service : client;
    first.shutdown_write();
    EXPECT_EQ(silent.read_to_end(), RawPeer::End::kClosed);
    EXPECT_EQ(first.read_to_end(), RawPeer::End::kReset);
  }
}

TEST_F(GatewayLifeTest, ATunnelWhoseClientHasLeftEndsAlthoughTheServiceTakesNoMore) {
  replace_gateway({.tunnel_linger = std::chrono::milliseconds(50)});
  RawPeer client = connect();
  client.send(request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: x\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  client.read_until("\r\n\r\n");
  client.send_until_blocked(/*quiet_ms=*/200, /*most=*/200'000'000);
  // As long as both ends are there, nobody minds.
  const auto connections = [this] { return server_->connection_count(); };
  EXPECT_EQ(on_loop(connections), 1u);
  client.reset();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (on_loop(connections) > 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(on_loop(connections), 0u);
}

TEST_F(GatewayLifeTest, ATunnelWhoseClientSaysNoMoreCarriesTheRestToASlowService) {
  RawPeer client = connect();
  client.send(request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: x\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  client.read_until("\r\n\r\n");
  const size_t sent = client.send_until_blocked(/*quiet_ms=*/200, /*most=*/200'000'000);
  client.shutdown_write();
  // Long enough for the patrol.
  EXPECT_TRUE(client.is_silent(100));
  service.read_bytes(sent);
  EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed);
}

TEST_F(GatewayLifeTest, ARefusedUpgradeIsAnOrdinaryAnswer) {
  RawPeer client = connect();
  client.send(request("GET /ws", kServicePort, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_THAT(client.read_until("\r\n\r\nno"), StartsWith("HTTP/1.1 403 "));
  client.send(request("GET /next"));
  service.read_until("\r\n\r\n");
}

TEST_F(GatewayLifeTest, NoTunnelToTheAgent) {
  RawPeer client = connect();
  client.send(request("GET /x", kAgentPort, "Connection: Upgrade\r\nUpgrade: websocket\r\n"));
  RawPeer agent = service_.accept();
  EXPECT_THAT(agent.read_until("\r\n\r\n"), Not(HasSubstr("pgrade")));
}

TEST_F(GatewayLifeTest, TheEndOfTheGatewayInterruptsRequests) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfo");
  client.read_until("fo");
  on_loop([this] {
    gateway_.reset();
    return 0;
  });
  EXPECT_EQ(client.read_to_end(), RawPeer::End::kReset);
  one_->kill();
}

}  // namespace
}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// Connecting to services: closed ports, services that are just starting, a server without means.

#include <gmock/gmock.h>

#include <cerrno>
#include <chrono>
#include <thread>

#include "gateway/testing/gateway_fixture.h"

namespace alcove::gateway {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kHello[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

class DialTest : public GatewayTest {
 protected:
  // How often a closed port is tried now.
  int tries() {
    const int before = one_->connects();
    RawPeer client = connect();
    client.send(request("GET /", /*port=*/9));
    client.read_until("}");
    return one_->connects() - before;
  }
};

TEST_F(DialTest, AClosedPortIsAnsweredAtOnce) {
  RawPeer client = connect();
  client.send(request("GET /", /*port=*/9));
  EXPECT_THAT(
      client.read_until("}"),
      EndsWith(
          R"({"sandboxId":"ione","message":"The sandbox is running but port is not open","port":9,"code":502})"));
  // Once by IPv4, once by IPv6, and not again.
  EXPECT_EQ(one_->connects(), 2);
}

TEST_F(DialTest, ALackOfTheServersOwnIsNoClosedPort) {
  RawPeer client = connect();
  for (const int error : {EMFILE, ENFILE, ENOMEM, ENOBUFS, EAGAIN}) {
    one_->fail_connects(error);
    client.send(request("GET /"));
    const std::string page = client.read_until("}");
    EXPECT_THAT(page, StartsWith("HTTP/1.1 503 ")) << error;
    EXPECT_THAT(page, HasSubstr("\r\nRetry-After: 1\r\n")) << error;
    EXPECT_THAT(page, HasSubstr("The server cannot connect to the sandbox now")) << error;
  }
  // It is not asked again by IPv6.
  EXPECT_EQ(one_->connects(), 5);
  for (const int error : {ECONNREFUSED, ENETUNREACH, EPERM}) {
    one_->fail_connects(error);
    client.send(request("GET /"));
    EXPECT_THAT(client.read_until("}"), HasSubstr("port is not open")) << error;
  }
  one_->fail_connects(0);
  client.send(request("GET /"));
  service_.accept().read_until("\r\n\r\n");
}

TEST_F(DialTest, TheLastDescriptorsAreNotForConnectionsIntoSandboxes) {
  replace_gateway({.descriptor_limit = 3});
  RawPeer client = connect();
  client.send(request("GET /"));
  const std::string page = client.read_until("}");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(page, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(page, HasSubstr(R"("sandboxId":"ione","message":"The server cannot connect)"));
  // The SDKs take a 503 of the agent for a sandbox that is gone.
  client.send(request("GET /health", kAgentPort));
  EXPECT_THAT(client.read_until("}"), StartsWith("HTTP/1.1 500 "));
}

TEST_F(DialTest, IdleConnectionsGiveWayWhenDescriptorsRunOut) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer first = service_.accept();
  first.read_until("\r\n\r\n");
  first.send(kHello);
  client.read_until("hello");
  wait_for_idle(1);
  one_->fail_connects(EMFILE);
  client.send(request("POST /2"));
  EXPECT_THAT(client.read_until("}"), StartsWith("HTTP/1.1 503 "));
  EXPECT_EQ(first.read_to_end(), RawPeer::End::kClosed);
  // Tried again with what that freed.
  EXPECT_EQ(one_->connects(), 3);
}

TEST_F(DialTest, OnlySoManyWaitForServicesToStart) {
  make_young();
  const auto waiting =
      std::make_shared<WaitingRequests>(WaitingRequests::Limits{.of_sandbox = 1, .all = 2});
  replace_gateway({.waiting = waiting});
  RawPeer first = connect();
  first.send(request("GET /", /*port=*/9));
  while (waiting->count() < 1) std::this_thread::yield();
  RawPeer second = connect();
  second.send(request("GET /", /*port=*/9));
  std::string page = second.read_until("}");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 429 "));
  EXPECT_THAT(page, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(page,
              EndsWith(R"({"sandboxId":"ione","message":"Too many requests wait for services )"
                       R"(of the sandbox to start","port":9,"connectionLimit":1,"code":429})"));

  RawPeer other = connect();
  other.send(request("GET /", /*port=*/9, "", kTwo));
  while (waiting->count() < 2) std::this_thread::yield();
  second.send(request("GET /", /*port=*/9));
  page = second.read_until("}");
  EXPECT_THAT(page, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(page, HasSubstr("\r\nRetry-After: 1\r\n"));
  // An open port is nothing to wait for.
  second.send(request("GET /"));
  service_.accept().read_until("\r\n\r\n");
  EXPECT_THAT(first.read_until("}"), HasSubstr("port is not open"));
  EXPECT_THAT(other.read_until("}"), HasSubstr("port is not open"));
  while (waiting->count() > 0) std::this_thread::yield();
}

TEST_F(DialTest, AClientThatLeavesDoesNotWaitForAService) {
  make_young();
  const auto waiting = std::make_shared<WaitingRequests>();
  replace_gateway({.waiting = waiting});
  const auto leave = [&](const std::string& sent, auto how) {
    const int before = one_->connects();
    RawPeer client = connect();
    client.send(sent);
    while (waiting->count() == 0) std::this_thread::yield();
    how(client);
    while (waiting->count() > 0) std::this_thread::yield();
    // Ten make a second.
    EXPECT_LT(one_->connects() - before, 10);
  };
  const std::string get = request("GET /", /*port=*/9);
  const std::string post =
      request("POST /", /*port=*/9, "Content-Length: 100000\r\n") + std::string(100'000, 'x');
  for (const std::string& sent : {get, post}) {
    leave(sent, [](RawPeer& client) { client.close(); });
    leave(sent, [](RawPeer& client) { client.reset(); });
    leave(sent, [](RawPeer& client) { client.shutdown_write(); });
  }
}

TEST_F(DialTest, NobodyWaitsForASilentHandshakeOfTheDeadOrForThoseWhoLeft) {
  const SandboxId id("itls");
  const auto sandbox = make_sandbox(id, R"({"httpsPorts":[8000]})");
  sandbox->open_port(kServicePort, service_.port());
  on_loop([&] { node_.add(sandbox); });
  const auto begin = std::chrono::steady_clock::now();
  RawPeer leaving = connect();
  leaving.send(request("POST /", kServicePort, "Content-Length: 5\r\n", id));
  RawPeer first = service_.accept();
  leaving.close();
  first.read_to_end();
  RawPeer client = connect();
  client.send(request("GET /", kServicePort, "", id));
  RawPeer second = service_.accept();
  EXPECT_FALSE(second.is_silent(1000));
  sandbox->kill();
  EXPECT_THAT(client.read_until("}"), HasSubstr("The sandbox was not found"));
  second.read_to_end();
  // The handshake has ten.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(9));
}

TEST_F(DialTest, AServiceThatIsJustStartingIsWaitedFor) {
  RawPeer client = connect();
  client.send(request("POST /process.Process/Start", kAgentPort, "Content-Length: 2\r\n") + "{}");
  RawPeer agent = service_.accept();
  agent.read_until("\r\n\r\n{}");
  agent.send(kHello);
  client.read_until("hello");

  client.send(request("GET /", /*port=*/9));
  while (one_->connects() < 4) std::this_thread::yield();
  one_->open_port(9, service_.port());
  service_.accept().read_until("\r\n\r\n");
}

TEST_F(DialTest, OnlyWhatRunsSomethingIsAReasonToWaitForAPort) {
  RawPeer client = connect();
  const auto post = [&](std::string_view path, uint16_t port) {
    client.send(request(cat("POST ", path), port));
    RawPeer agent = service_.accept();
    agent.read_until("\r\n\r\n");
    agent.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}");
    client.read_until("{}");
  };
  constexpr uint16_t kInterpreter = 49999;
  one_->open_port(kInterpreter, service_.port());
  for (const char* call : {"List", "Connect", "Update", "SendSignal", "CloseStdin"}) {
    post(cat("/process.Process/", call), kAgentPort);
  }
  post("/filesystem.Filesystem/Stat", kAgentPort);
  post("/contexts", kInterpreter);
  post("/execute", kServicePort);
  EXPECT_EQ(tries(), 2);
  post("/execute", kInterpreter);
  EXPECT_EQ(tries(), 10);
}

TEST_F(DialTest, WhatACommandStartsAtItsEndIsWaitedForToo) {
  const auto starts = std::make_shared<RecentStarts>();
  replace_gateway({.recent_starts = starts});
  // As if what was noted so far had happened long ago.
  const auto time_passes = [&] {
    starts->note(kOne, std::chrono::steady_clock::now() - Gateway::kAfterCommand);
  };
  one_->open_port(49999, service_.port());
  for (const auto& [line, port] : {std::pair("POST /process.Process/Start", kAgentPort),
                                   std::pair("POST /execute", uint16_t{49999})}) {
    RawPeer client = connect();
    client.send(request(line, port, "Content-Length: 2\r\n") + "{}");
    RawPeer agent = service_.accept();
    agent.read_until("\r\n\r\n{}");
    time_passes();
    EXPECT_EQ(tries(), 2) << line;
    agent.send(kHello);
    client.read_until("hello");
    // Served when the first request is over.
    const int before = one_->connects();
    client.send(request("GET /", /*port=*/9));
    EXPECT_THAT(client.read_until("}"), HasSubstr("port is not open"));
    EXPECT_EQ(one_->connects() - before, 10) << line;
  }
}

TEST_F(DialTest, ALineForAShellIsAReasonToWaitForAPort) {
  const auto starts = std::make_shared<RecentStarts>();
  replace_gateway({.recent_starts = starts});
  RawPeer client = connect();
  client.send(
      request("POST /process.Process/StreamInput", kAgentPort, "Transfer-Encoding: chunked\r\n") +
      "5\r\nfirst\r\n");
  RawPeer agent = service_.accept();
  agent.read_until("first");
  starts->note(kOne, std::chrono::steady_clock::now() - Gateway::kAfterCommand);
  EXPECT_EQ(tries(), 2);
  client.send("6\r\nsecond\r\n");
  agent.read_until("second");
  EXPECT_EQ(tries(), 10);
}

TEST_F(DialTest, AYoungSandboxGetsRetriesUntilTheyAreUsedUp) {
  make_young();
  RawPeer client = connect();
  client.send(request("GET /", /*port=*/9));
  EXPECT_THAT(client.read_until("}"), HasSubstr("port is not open"));
  EXPECT_EQ(one_->connects(), 10);
}

TEST_F(DialTest, AServiceOnIpv6LoopbackOnlyIsReached) {
  RawService on_v6("::1");
  one_->open_port(9, on_v6.port(), sandbox::Machine::Family::kV6);
  RawPeer client = connect();
  client.send(request("GET /", /*port=*/9));
  RawPeer service = on_v6.accept();
  service.read_until("\r\n\r\n");
  service.send(kHello);
  client.read_until("hello");
}

}  // namespace
}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// Requests and answers on their way through the gateway, byte by byte.

#include <gmock/gmock.h>

#include <chrono>
#include <string>
#include <thread>

#include "gateway/testing/gateway_fixture.h"

namespace alcove::gateway {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ProxyTest : public GatewayTest {};

// Nearly as much as fits into a head: names in Connection, and fields to compare them with.
std::string named_fields() {
  std::string lines = "Connection: a";
  for (int i = 0; i < 15'000; ++i) lines += ",a";
  lines += "\r\n";
  for (int i = 0; i < 8'000; ++i) lines += "b:\r\n";
  return lines;
}

TEST_F(ProxyTest, PassesRequestAndAnswer) {
  RawPeer client = connect();
  client.send(request("GET /a/b?c=d%20e", kServicePort, "X-Mine: 1\r\nConnection: keep-alive\r\n"));
  RawPeer service = service_.accept();
  EXPECT_EQ(service.read_until("\r\n\r\n"),
            "GET /a/b?c=d%20e HTTP/1.1\r\nHost: 8000-ione.example.org\r\nX-Mine: 1\r\n\r\n");
  service.send(
      "HTTP/1.1 201 Fine\r\nContent-Length: 5\r\nX-Theirs: 2\r\nKeep-Alive: 5\r\n\r\nhello");
  const std::string head = client.read_until("\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 201 "));
  EXPECT_THAT(head, HasSubstr("X-Theirs: 2\r\n"));
  EXPECT_THAT(head, HasSubstr("Content-Length: 5\r\n"));
  EXPECT_THAT(head, Not(HasSubstr("Keep-Alive")));
  EXPECT_EQ(client.read_bytes(5), "hello");
}

TEST_F(ProxyTest, ServiceSeesTheMaskedHostAndTheAgentDoesNot) {
  const SandboxId id("imasked");
  const auto masked = make_sandbox(id, R"({"maskRequestHost":"localhost:${PORT}"})");
  masked->open_port(kServicePort, service_.port());
  masked->open_port(kAgentPort, service_.port());
  on_loop([&] { node_.add(masked); });
  RawPeer client = connect();
  client.send(request("GET /", kServicePort, "X-Forwarded-Host: forged\r\n", id));
  RawPeer service = service_.accept();
  EXPECT_EQ(service.read_until("\r\n\r\n"),
            "GET / HTTP/1.1\r\nHost: localhost:8000\r\n"
            "X-Forwarded-Host: 8000-imasked.example.org\r\n\r\n");
  RawPeer other = connect();
  other.send(request("GET /health", kAgentPort, {}, id));
  RawPeer agent = service_.accept();
  EXPECT_EQ(agent.read_until("\r\n\r\n"),
            "GET /health HTTP/1.1\r\nHost: 49983-imasked.example.org\r\n\r\n");
}

TEST_F(ProxyTest, EachPieceOfAnAnswerArrivesAtOnce) {
  RawPeer client = connect();
  client.send(request("GET /events"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  for (int i = 0; i < 3; ++i) {
    service.send("3\r\none\r\n");
    EXPECT_EQ(client.read_until("one\r\n"), "3\r\none\r\n");
    EXPECT_TRUE(client.is_silent(20));
  }
  service.send("0\r\n\r\n");
  EXPECT_EQ(client.read_until("0\r\n\r\n"), "0\r\n\r\n");
  // Both connections go on.
  client.send(request("GET /again"));
  service.read_until("\r\n\r\n");
}

TEST_F(ProxyTest, EachPieceOfARequestArrivesAtOnce) {
  RawPeer client = connect();
  client.send(request("POST /in", kServicePort, "Transfer-Encoding: chunked\r\n"));
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  for (int i = 0; i < 3; ++i) {
    client.send("3\r\none\r\n");
    EXPECT_EQ(service.read_until("one\r\n"), "3\r\none\r\n");
  }
  client.send("0\r\n\r\n");
  EXPECT_EQ(service.read_until("0\r\n\r\n"), "0\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ProxyTest, BothDirectionsFlowAtTheSameTime) {
  RawPeer client = connect();
  client.send(request("POST /echo", kServicePort, "Transfer-Encoding: chunked\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  client.read_until("\r\n\r\n");
  for (int i = 0; i < 3; ++i) {
    client.send("4\r\nping\r\n");
    service.read_until("ping\r\n");
    service.send("4\r\npong\r\n");
    client.read_until("pong\r\n");
  }
}

TEST_F(ProxyTest, AnEarlyAnswerIsPassedOnBeforeTheRequestEnds) {
  RawPeer client = connect();
  client.send(request("POST /in", kServicePort, "Transfer-Encoding: chunked\r\n"));
  client.send("3\r\none\r\n");
  RawPeer service = service_.accept();
  service.read_until("one\r\n");
  service.send("HTTP/1.1 404 No\r\nContent-Length: 2\r\n\r\nno");
  EXPECT_THAT(client.read_until("\r\n\r\nno"), StartsWith("HTTP/1.1 404 "));
  // The rest of the request has nowhere to go.
  EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed);
}

TEST_F(ProxyTest, AServiceThatAnswersAndClosesIsHeardDespiteAnUnfinishedUpload) {
  RawPeer client = connect();
  client.send(request("POST /in", kServicePort, "Content-Length: 100000000\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 413 Big\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig");
  service.close();
  EXPECT_THAT(client.read_until("\r\n\r\nbig"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(ProxyTest, BodiesWithALengthKeepIt) {
  RawPeer client = connect();
  client.send(request("PUT /x", kServicePort, "Content-Length: 10\r\n") + "12345");
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\n"), HasSubstr("Content-Length: 10\r\n"));
  EXPECT_EQ(service.read_bytes(5), "12345");
  client.send("67890");
  EXPECT_EQ(service.read_bytes(5), "67890");
  service.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 204 "));
  client.send(request("GET /next"));
  service.read_until("\r\n\r\n");
}

TEST_F(ProxyTest, LargeBodiesArriveWhole) {
  std::string data(20'000'000, 'a');
  for (size_t i = 0; i < data.size(); i += 997) data[i] = static_cast<char>('b' + i % 20);
  RawPeer client = connect();
  std::thread sender([&] {
    client.send(request("POST /x", kServicePort, cat("Content-Length: ", data.size(), "\r\n")));
    client.send(data);
  });
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  EXPECT_TRUE(service.read_bytes(data.size()) == data);
  sender.join();
  std::thread answerer([&] {
    service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    service.send("1312d00\r\n" + data + "\r\n0\r\n\r\n");
  });
  client.read_until("\r\n\r\n");
  std::string received;
  for (;;) {
    const std::string size_line = client.read_until("\r\n");
    const size_t size = std::stoul(size_line, nullptr, 16);
    received += client.read_bytes(size);
    client.read_until("\r\n");
    if (size == 0) break;
  }
  answerer.join();
  EXPECT_TRUE(received == data);
}

TEST_F(ProxyTest, ABodyThatEndsByClosingBecomesChunked) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\nhel");
  EXPECT_THAT(client.read_until("hel\r\n"), HasSubstr("Transfer-Encoding: chunked"));
  service.send("lo");
  client.read_until("lo\r\n");
  service.close();
  client.read_until("0\r\n\r\n");
  client.send(request("GET /next"));
  service_.accept().read_until("\r\n\r\n");
}

TEST_F(ProxyTest, AServiceThatDiesInABodyIsNoCleanEnd) {
  for (const char* framing : {"Content-Length: 100", "Transfer-Encoding: chunked"}) {
    for (const bool reset : {false, true}) {
      RawPeer client = connect();
      client.send(request("GET /x"));
      RawPeer service = service_.accept();
      service.read_until("\r\n\r\n");
      service.send(cat("HTTP/1.1 200 OK\r\n", framing, "\r\n\r\n3\r\none\r\n"));
      client.read_until("one");
      if (reset) {
        service.reset();
      } else {
        service.close();
      }
      std::string rest;
      EXPECT_EQ(client.read_to_end(&rest), RawPeer::End::kReset);
      EXPECT_THAT(rest, Not(HasSubstr("0\r\n\r\n")));
    }
  }
}

TEST_F(ProxyTest, AServiceThatDiesBeforeItsAnswerIs502) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  {
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
  }
  EXPECT_THAT(client.read_until("}"), HasSubstr("closed the connection without an answer"));
  // The client's connection is fine.
  client.send(request("GET /y"));
  service_.accept().read_until("\r\n\r\n");
}

TEST_F(ProxyTest, AClientThatLeavesIsPassedOn) {
  {
    RawPeer client = connect();
    client.send(request("GET /slow"));
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
    client.close();
    EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed);
  }
  {
    RawPeer client = connect();
    client.send(request("GET /stream"));
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
    service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
    client.read_until("one\r\n");
    client.reset();
    service.read_to_end();
  }
  {
    RawPeer client = connect();
    client.send(request("POST /up", kServicePort, "Transfer-Encoding: chunked\r\n") +
                "3\r\none\r\n");
    RawPeer service = service_.accept();
    service.read_until("one\r\n");
    client.close();
    std::string rest;
    service.read_to_end(&rest);
    EXPECT_EQ(rest, "") << "the body must not look complete";
  }
}

TEST_F(ProxyTest, AClientThatLeavesIsNoticedAlthoughTheServiceTakesNoMore) {
  RawPeer client = connect();
  client.send(request("POST /big", kServicePort, "Content-Length: 1000000000\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  client.send_until_blocked(/*quiet_ms=*/200, /*most=*/200'000'000);
  EXPECT_EQ(on_loop([this] { return server_->connection_count(); }), 1u);
  client.reset();
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (on_loop([this] { return server_->connection_count(); }) > 0 &&
         std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  EXPECT_EQ(on_loop([this] { return server_->connection_count(); }), 0u);
  EXPECT_EQ(on_loop([this] { return gateway_->idle_connections(); }), 0u);
}

TEST_F(ProxyTest, AClientThatSaysNoMoreHasLeft) {
  for (const char* more : {"", "Content-Length: 3\r\n", "Content-Length: 9\r\n"}) {
    RawPeer client = connect();
    client.send(request("POST /silent", kServicePort, more));
    if (*more != '\0') client.send("abc");
    RawPeer service = service_.accept();
    service.read_until(*more != '\0' ? "\r\n\r\nabc" : "\r\n\r\n");
    client.shutdown_write();
    EXPECT_EQ(service.read_to_end(), RawPeer::End::kClosed) << more;
    EXPECT_EQ(on_loop([this] { return gateway_->idle_connections(); }), 0u);
  }
}

TEST_F(ProxyTest, ABrokenRequestBodyDoesNotLookComplete) {
  RawPeer client = connect();
  client.send(request("POST /up", kServicePort, "Transfer-Encoding: chunked\r\n") + "3\r\none\r\n");
  RawPeer service = service_.accept();
  service.read_until("one\r\n");
  client.send("zz\r\n");
  std::string rest;
  service.read_to_end(&rest);
  EXPECT_EQ(rest, "");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 400 "));
}

TEST_F(ProxyTest, AnswersWithoutABody) {
  RawPeer client = connect();
  client.send(request("HEAD /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 1234\r\n"));

  client.send(request("HEAD /x"));
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));

  client.send(request("GET /x"));
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 99\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("ETag: \"a\"\r\n"));

  client.send(request("GET /x"));
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 204 "));

  client.send(request("GET /x"));
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), HasSubstr("Content-Length: 0\r\n"));
}

TEST_F(ProxyTest, InterimAnswersAreSkippedAndExpectIsAnswered) {
  RawPeer client = connect();
  client.send(request("POST /x", kServicePort, "Content-Length: 3\r\nExpect: 100-continue\r\n"));
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 100 "));
  client.send("abc");
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\nabc"), Not(HasSubstr("Expect")));
  service.send("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
  service.send("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(ProxyTest, PipelinedRequestsAreServedInTurn) {
  RawPeer client = connect();
  client.send(request("GET /1") + request("GET /2"));
  RawPeer service = service_.accept();
  EXPECT_THAT(service.read_until("\r\n\r\n"), StartsWith("GET /1 "));
  EXPECT_TRUE(service.is_silent(20));
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1");
  EXPECT_THAT(service.read_until("\r\n\r\n"), StartsWith("GET /2 "));
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
  client.read_until("\r\n\r\n1");
  client.read_until("\r\n\r\n2");
}

TEST_F(ProxyTest, MuchPipelinedDuringALongAnswerWaitsItsTurn) {
  RawPeer client = connect();
  const std::string body(200'000, 'b');
  client.send(request("GET /1") +
              request("POST /2", kServicePort, cat("Content-Length: ", body.size(), "\r\n")) +
              body);
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  client.read_until("one\r\n");
  // Long enough to be watched for the client's leaving.
  EXPECT_TRUE(client.is_silent(4 * static_cast<int>(Patrol::kRound.count())));
  service.send("0\r\n\r\n");
  client.read_until("0\r\n\r\n");
  RawPeer second = service_.accept();
  second.read_until("\r\n\r\n");
  EXPECT_TRUE(second.read_bytes(body.size()) == body);
}

TEST_F(ProxyTest, ASlowReaderStopsTheServiceNotTheMemory) {
  RawPeer client = connect();
  client.send(request("GET /big"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n");
  // What the kernel's socket buffers take (a few MB) plus one buffer of ours.
  const size_t taken = service.send_until_blocked(/*quiet_ms=*/500, /*most=*/200'000'000);
  EXPECT_LT(taken, 64'000'000u);
  client.read_until("\r\n\r\n");
  client.read_bytes(taken);
  // And it goes on when the client reads.
  service.send("more");
  client.read_until("more");
}

TEST_F(ProxyTest, AServiceThatDoesNotReadStopsTheUpload) {
  RawPeer client = connect();
  client.send(request("POST /big", kServicePort, "Content-Length: 1000000000\r\n"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  const size_t taken = client.send_until_blocked(/*quiet_ms=*/500, /*most=*/200'000'000);
  EXPECT_LT(taken, 64'000'000u);
  // An answer in this state ends the request.
  service.send("HTTP/1.1 507 Full\r\nContent-Length: 0\r\n\r\n");
  EXPECT_THAT(client.read_until("\r\n\r\n"), StartsWith("HTTP/1.1 507 "));
}

TEST_F(ProxyTest, HostileAnswersAreRefused) {
  const std::string huge(200'000, 'h');
  std::string flood;
  for (int i = 0; i < 100; ++i) flood += "HTTP/1.1 103 Early Hints\r\n\r\n";
  for (const std::string& answer : {
           std::string("garbage\r\n\r\n"),
           std::string("HTTP/1.1 abc OK\r\n\r\n"),
           std::string("HTTP/1.1 99 Low\r\nContent-Length: 0\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd"),
           std::string("HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n"),
           std::string(
               "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: a\rInjected: b\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX : a\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: a\001b\r\nContent-Length: 0\r\n\r\n"),
           std::string("HTTP/1.1 200 OK\r\nX: a\nInjected: b\r\nContent-Length: 0\r\n\r\n"),
           std::string("HTTP/1.1 204 OK\r\nX: a\177b\r\n\r\n"),
           std::string("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n"),
           "HTTP/1.1 200 OK\r\n" + named_fields() + "\r\n",
           "HTTP/1.1 200 OK\r\nX: " + huge + "\r\n\r\n",
           "HTTP/1.1 103 Early Hints\r\nX: " + huge + "\r\n\r\n",
           flood + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
           std::string("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"),
       }) {
    RawPeer client = connect();
    client.send(request("POST /x"));
    RawPeer service = service_.accept();
    service.read_until("\r\n\r\n");
    service.send(answer);
    const std::string page = client.read_until("}");
    EXPECT_THAT(page, StartsWith("HTTP/1.1 502 ")) << answer.substr(0, 80);
    EXPECT_THAT(page, HasSubstr("not valid HTTP")) << answer.substr(0, 80);
    EXPECT_THAT(page, Not(HasSubstr("Injected"))) << answer.substr(0, 80);
  }
}

TEST_F(ProxyTest, ARequestWhoseConnectionNamesThousandsOfFieldsIsRefused) {
  RawPeer client = connect();
  client.send(request("GET /x", kServicePort, named_fields()));
  const std::string answer = client.read_until("\r\n\r\nBad Request");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 400 "));
  EXPECT_THAT(answer, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_FALSE(service_.has_connection(0));
}

TEST_F(ProxyTest, UpgradeRequiredArrivesWithWhatItRequires) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send(
      "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
      "Content-Length: 2\r\n\r\nno");
  EXPECT_EQ(client.read_until("no"),
            "HTTP/1.1 426 Upgrade Required\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            "Content-Length: 2\r\n\r\nno");
  client.send(request("GET /next"));
  service.read_until("\r\n\r\n");
}

TEST_F(ProxyTest, ABrokenChunkCutsTheAnswer) {
  RawPeer client = connect();
  client.send(request("GET /x"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n");
  client.read_until("one\r\n");
  service.send("fffffffffffffffff\r\n");
  std::string rest;
  EXPECT_EQ(client.read_to_end(&rest), RawPeer::End::kReset);
  EXPECT_EQ(rest, "");
}

TEST_F(ProxyTest, BytesAfterAnAnswerAreNotTheNextAnswer) {
  RawPeer client = connect();
  client.send(request("GET /1"));
  RawPeer service = service_.accept();
  service.read_until("\r\n\r\n");
  service.send(
      "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1"
      "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison");
  client.read_until("\r\n\r\n1");
  client.send(request("GET /2"));
  RawPeer fresh = service_.accept();
  fresh.read_until("\r\n\r\n");
  fresh.send("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n2");
  EXPECT_THAT(client.read_until("\r\n\r\n2"), Not(HasSubstr("poison")));
}

}  // namespace
}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/client_connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "http/server.h"
#include "http/testing/loop_runner.h"
#include "net/event_loops.h"

namespace alcove::http {
namespace {

using net::testing::run;
using ::testing::HasSubstr;

// A client on one end of a socket pair; the test plays the server on the other.
struct Pair {
  Pair() {
    auto [client, other] = testing::make_stream_pair(loop);
    connection.emplace(std::move(client));
    peer = std::move(other);
  }
  // The answer is there before the request is sent: the client must not mind.
  Result<Response> answer(std::string_view bytes, std::string method = "GET") {
    (void)run(loop, peer->write(bytes));
    peer->shutdown_write();
    RequestHead head{.method = std::move(method), .target = "/", .headers = {{"Host", "x"}}};
    return run(loop, fetch(*connection, std::move(head), {}, 1'000'000));
  }
  std::string received() {
    std::string all(65536, '\0');
    const auto count = run(loop, peer->read_some(all));
    all.resize(count.value_or(0));
    return all;
  }
  boost::asio::io_context loop{1};
  std::optional<ClientConnection> connection;
  std::unique_ptr<net::TcpStream> peer;
};

TEST(ClientConnection, WritesFramingOfItsOwn) {
  Pair pair;
  RequestHead head{.method = "POST",
                   .target = "/p?q",
                   .headers = {{"Host", "x"}, {"content-length", "9"}, {"Transfer-Encoding", "y"}}};
  ASSERT_TRUE(run(pair.loop, pair.connection->write_head(head, std::nullopt, "abc")));
  ASSERT_TRUE(run(pair.loop, pair.connection->write_body("de")));
  ASSERT_TRUE(run(pair.loop, pair.connection->finish_body("f")));
  EXPECT_EQ(pair.received(),
            "POST /p?q HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n");
}

TEST(ClientConnection, AnEmptyBodyHasALengthOnlyWhereOneIsExpected) {
  for (const auto& [method, expected] :
       {std::pair{"GET", "GET / HTTP/1.1\r\n\r\n"},
        std::pair{"DELETE", "DELETE / HTTP/1.1\r\n\r\n"},
        std::pair{"POST", "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n"}}) {
    Pair pair;
    const RequestHead head{.method = method, .target = "/", .headers = {}};
    ASSERT_TRUE(run(pair.loop, pair.connection->write_head(head, 0)));
    EXPECT_EQ(pair.received(), expected);
  }
}

TEST(ClientConnection, RefusesToWriteASecondRequestByAccident) {
  Pair pair;
  const RequestHead blank{.method = "GET", .target = "/ HTTP/1.1\r\nX: y", .headers = {}};
  EXPECT_FALSE(run(pair.loop, pair.connection->write_head(blank, 0)));
  const RequestHead header{.method = "GET", .target = "/", .headers = {{"A", "b\r\nC: d"}}};
  EXPECT_FALSE(run(pair.loop, pair.connection->write_head(header, 0)));
  const RequestHead name{.method = "GET", .target = "/", .headers = {{"A: b\r\nC", "d"}}};
  EXPECT_FALSE(run(pair.loop, pair.connection->write_head(name, 0)));
}

TEST(ClientConnection, ChecksTheLengthOfItsBody) {
  Pair pair;
  const RequestHead head{.method = "POST", .target = "/", .headers = {}};
  ASSERT_TRUE(run(pair.loop, pair.connection->write_head(head, 3, "ab")));
  EXPECT_FALSE(run(pair.loop, pair.connection->write_body("cd")));
  EXPECT_FALSE(run(pair.loop, pair.connection->finish_body()));
  EXPECT_FALSE(pair.connection->reusable());
}

struct Answer {
  std::string_view bytes;
  std::string_view method;
  int status;
  std::string_view body;
  bool reusable;
};

TEST(ClientConnection, UnderstandsEveryFraming) {
  const Answer answers[] = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "GET", 200, "abc", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", "GET", 200, "abc",
       true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nT: u\r\n\r\n", "GET",
       200, "abc", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\nConnection: close\r\n\r\n0\r\n\r\n", "GET",
       200, "", false},
      {"HTTP/1.1 200 OK\r\n\r\nabc", "GET", 200, "abc", false},
      {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", "GET", 200, "abc", false},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc", "GET", 200,
       "abc", true},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", "HEAD", 200, "", true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", "HEAD", 200, "", true},
      {"HTTP/1.1 204 No Content\r\n\r\n", "GET", 204, "", true},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", "GET", 304, "", true},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
       "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na",
       "GET", 200, "a", true},
      // Bytes that nobody asked for spoil the connection, not the answer.
      {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\naHTTP/1.1 200 OK\r\n\r\n", "GET", 200, "a",
       false},
  };
  for (const Answer& answer : answers) {
    Pair pair;
    const auto response = pair.answer(answer.bytes, std::string(answer.method));
    ASSERT_TRUE(response) << answer.bytes << ": " << response.error().message();
    EXPECT_EQ(response->status, answer.status) << answer.bytes;
    EXPECT_EQ(response->body, answer.body) << answer.bytes;
    EXPECT_EQ(pair.connection->reusable(), answer.reusable) << answer.bytes;
  }
}

TEST(ClientConnection, RefusesAmbiguousOrBrokenAnswers) {
  std::string interim;
  for (int i = 0; i < 20; ++i) interim += "HTTP/1.1 100 Continue\r\n\r\n";
  const std::string answers[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\nabc",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nab",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nab",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nz\r\n",
      "HTTP/1.1 200 OK\nContent-Length: 3\n\nabc",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 099 No\r\n\r\n",
      "HTTP/2 200 OK\r\n\r\n",
      "SSH-2.0-OpenSSH\r\n\r\n",
      "",
      "HTTP/1.1 200 OK\r\n",
      "HTTP/1.1 200 OK\r\nA: " + std::string(70'000, 'x') + "\r\n\r\n",
      interim + "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
  };
  for (const std::string& bytes : answers) {
    Pair pair;
    const auto response = pair.answer(bytes);
    EXPECT_FALSE(response) << bytes.substr(0, 100);
    EXPECT_FALSE(pair.connection->reusable()) << bytes.substr(0, 100);
  }
}

TEST(ClientConnection, LimitsTheAnswer) {
  Pair pair;
  const auto response = pair.answer(
      cat("HTTP/1.1 200 OK\r\nContent-Length: 1000001\r\n\r\n", std::string(1000, 'x')));
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code(), Code::kResourceExhausted);
}

TEST(ClientConnection, HandsOverWhatFollowsA101) {
  Pair pair;
  const RequestHead head{.method = "GET", .target = "/", .headers = {{"Connection", "Upgrade"}}};
  ASSERT_TRUE(run(pair.loop, pair.connection->write_head(head, 0)));
  EXPECT_THAT(pair.received(), HasSubstr("Connection: Upgrade\r\n"));
  (void)run(pair.loop, pair.peer->write("HTTP/1.1 101 Switching Protocols\r\n\r\nraw"));
  const auto answer = run(pair.loop, pair.connection->read_head("GET"));
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 101);
  EXPECT_EQ(pair.connection->take_read_ahead(), "raw");
  EXPECT_FALSE(pair.connection->reusable());
}

Task<void> write_until_refused(ClientConnection& connection, bool& refused) {
  const RequestHead head{.method = "POST", .target = "/", .headers = {{"Host", "x"}}};
  (void)co_await connection.write_head(head, std::nullopt);
  const std::string piece(100'000, 'x');
  while (co_await connection.write_body(piece)) {
  }
  refused = true;
}

Task<void> refuse_upload(Exchange& exchange) {
  Response response{.status = 413, .headers = {}, .body = "too much"};
  (void)co_await exchange.respond(std::move(response));
}

TEST(ClientConnection, ReadsAnEarlyAnswerWhileItsBodyIsBeingWritten) {
  Pair pair;
  Server server(pair.loop, refuse_upload);
  server.serve_connection(std::move(pair.peer));
  bool refused = false;
  net::spawn(pair.loop, write_until_refused(*pair.connection, refused));
  const auto head = run(pair.loop, pair.connection->read_head("POST"));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 413);
  EXPECT_EQ(run(pair.loop, pair.connection->body().read_all(100)).value(), "too much");
  EXPECT_FALSE(pair.connection->reusable());
  pair.connection->stream().close();
  net::testing::run_until(pair.loop, [&] { return refused; });
}

Task<void> echo(Exchange& exchange) {
  auto body = co_await exchange.body().read_all(10'000'000);
  Response response{.status = 200, .headers = {}, .body = body.value_or("broken")};
  (void)co_await exchange.respond(std::move(response));
}

TEST(ClientConnection, IsReusedForRequestAfterRequest) {
  Pair pair;
  Server server(pair.loop, echo);
  server.serve_connection(std::move(pair.peer));
  for (const size_t size : {0u, 10u, 3'000'000u}) {
    RequestHead head{.method = "POST", .target = "/", .headers = {{"Host", "x"}}};
    const auto response = run(
        pair.loop, fetch(*pair.connection, std::move(head), std::string(size, 'x'), 10'000'000));
    ASSERT_TRUE(response) << response.error().message();
    EXPECT_EQ(response->body, std::string(size, 'x'));
    EXPECT_TRUE(pair.connection->reusable());
  }
}

}  // namespace
}  // namespace alcove::http

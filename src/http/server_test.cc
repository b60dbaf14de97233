// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/server.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "http/testing/raw_client.h"
#include "net/listener.h"
#include "net/tcp_stream.h"
#include "net/testing/socket_pair.h"

namespace alcove::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using testing::RawClient;
using namespace std::string_view_literals;
using ::testing::StartsWith;

// Answers with what it understood of the request.
Task<void> echo(Exchange& exchange) {
  const RequestHead& request = exchange.request();
  auto body = co_await exchange.body().read_all(1024 * 1024);
  Response response;
  response.headers.add("Content-Type", "text/plain");
  response.body =
      cat(request.method, ' ', request.target, ' ', request.headers.get("Host").value_or("-"), " [",
          body ? *body : body.error().message(), "]");
  (void)co_await exchange.respond(std::move(response));
}

Task<void> ignore_body(Exchange& exchange) {
  Response response{.status = 401, .headers = {}, .body = "no"};
  (void)co_await exchange.respond(std::move(response));
}

Task<void> stream_three(Exchange& exchange) {
  ResponseHead head;
  EXPECT_TRUE(co_await exchange.start_with(std::move(head), std::nullopt, "one"));
  EXPECT_TRUE(co_await exchange.write("two"));
  EXPECT_TRUE(co_await exchange.write(""));
  EXPECT_TRUE(co_await exchange.finish("three"));
}

TEST(Server, AnswersWithContentLength) {
  RawClient client(echo);
  EXPECT_EQ(client.talk("GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 15\r\n\r\n"
            "GET /a?b=c x []");
}

TEST(Server, AnswersPipelinedRequestsInOrder) {
  RawClient client(echo);
  const std::string answers = client.talk(
      "GET /1 HTTP/1.1\r\nHost: x\r\n\r\n"
      "POST /2 HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
      "POST /3 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "2\r\nde\r\n1;x=y\r\nf\r\n0\r\nTrailer: z\r\n\r\n"
      "\r\nGET /4 HTTP/1.1\r\nHost: x\r\n\r\n");
  size_t at = 0;
  for (const std::string_view part :
       {"GET /1 x []", "POST /2 x [abc]", "POST /3 x [def]", "GET /4 x []"}) {
    at = answers.find(part, at);
    EXPECT_NE(at, std::string::npos) << part << "\n" << answers;
  }
}

TEST(Server, TakesARequestByteByByte) {
  RawClient client(echo);
  const std::string_view request =
      "POST /x HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (const char c : request) client.send(std::string_view(&c, 1));
  EXPECT_THAT(client.read_through("]"), EndsWith("POST /x h [abc]"));
}

TEST(Server, StreamsChunksToHttp11) {
  RawClient client(stream_three);
  EXPECT_EQ(client.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
            "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n");
}

TEST(Server, StreamsUntilCloseToHttp10) {
  RawClient client(stream_three);
  EXPECT_EQ(client.talk("GET / HTTP/1.0\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nonetwothree");
}

TEST(Server, KeepsHttp10ConnectionsOnlyOnRequest) {
  RawClient client(echo);
  client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(client.read_through("]"), HasSubstr("Connection: keep-alive\r\n"));
  client.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), HasSubstr("Connection: close\r\n"));
}

TEST(Server, ClosesWhenTheClientAsks) {
  RawClient client(echo);
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: foo, Close\r\n\r\n");
  EXPECT_THAT(client.read_through("]"), HasSubstr("Connection: close\r\n"));
  client.stream().shutdown_write();
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(Server, HeadHasHeadersWithoutBody) {
  RawClient client(echo);
  const std::string answer = client.talk("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("Content-Length: 11\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
  client.reconnect();
  RawClient streaming(stream_three);
  EXPECT_EQ(streaming.talk("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

Task<void> no_content(Exchange& exchange) {
  Response response{.status = 204, .headers = {}, .body = "ignored"};
  (void)co_await exchange.respond(std::move(response));
}

TEST(Server, StatusWithoutBodyHasNoLength) {
  RawClient client(no_content);
  EXPECT_EQ(client.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "HTTP/1.1 204 No Content\r\n\r\n");
}

TEST(Server, ContinuesWhenTheBodyIsRead) {
  RawClient client(echo);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(client.read_through("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("hi");
  EXPECT_THAT(client.read_through("]"), EndsWith("[hi]"));
}

TEST(Server, ClosesWhenARefusedBodyWasNeverContinued) {
  RawClient client(ignore_body);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  const std::string answer = client.read_through("no");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 401 Unauthorized\r\n"));
  EXPECT_THAT(answer, HasSubstr("Connection: close\r\n"));
}

TEST(Server, DrainsASmallUnreadBody) {
  RawClient client(ignore_body);
  client.send("POST /1 HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n");
  EXPECT_THAT(client.read_through("no"), Not(HasSubstr("Connection: close")));
  client.send(std::string(1000, 'x') + "GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("no"), StartsWith("HTTP/1.1 401"));
}

TEST(Server, DrainsAReceivedChunkedBody) {
  RawClient client(ignore_body);
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  EXPECT_THAT(client.read_through("no"), Not(HasSubstr("Connection: close")));
  client.send("POST /2 HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_THAT(client.read_through("no"), HasSubstr("Connection: close\r\n"));
}

TEST(Server, AnnouncesTheCloseOfALargeUnreadBody) {
  RawClient client(ignore_body);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n");
  EXPECT_THAT(client.read_through("no"), HasSubstr("Connection: close\r\n"));
  // The answer stays readable while the rest of the body is still being sent.
  client.send(std::string(300'000, 'x'));
  client.stream().shutdown_write();
  EXPECT_EQ(client.read_to_end(), "");
}

struct BadRequest {
  std::string_view name;
  std::string_view bytes;
  std::string_view status;
};

TEST(Server, RefusesWhatIsNotCleanHttp) {
  const BadRequest cases[] = {
      {"no host", "GET / HTTP/1.1\r\n\r\n", "400"},
      {"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "400"},
      {"bad host", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", "400"},
      {"obs-fold", "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\n z\r\n\r\n", "400"},
      {"bare lf", "GET / HTTP/1.1\nHost: a\n\n", "400"},
      {"bare cr", "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", "400"},
      {"nul", "GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n"sv, "400"},
      {"space before colon", "GET / HTTP/1.1\r\nHost : a\r\n\r\n", "400"},
      {"te gzip", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", "400"},
      {"te xchunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", "400"},
      {"te identity", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: identity\r\n\r\n", "400"},
      {"te twice",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked"
       "\r\n\r\n",
       "400"},
      {"te and cl",
       "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
       "400"},
      {"te in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", "400"},
      {"cl twice", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
       "400"},
      {"cl list", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n", "400"},
      {"cl plus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\n", "400"},
      {"cl minus", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -3\r\n\r\n", "400"},
      {"cl huge", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n",
       "400"},
      {"connect", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"asterisk", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"authority target", "GET a HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"user in target", "GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", "400"},
      {"version 2", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", "400"},
      {"version 0.9", "GET /\r\n\r\n", "400"},
      {"tls hello", "\x16\x03\x01\x02\r\n\r\n", "400"},
  };
  for (const BadRequest& bad : cases) {
    RawClient client(echo);
    const std::string request(bad.bytes);
    const std::string answer = client.talk(request + "GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(answer, StartsWith(cat("HTTP/1.1 ", bad.status, ' '))) << bad.name;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n")) << bad.name;
    EXPECT_THAT(answer, HasSubstr(cat("{\"code\":", bad.status, ",\"message\":\""))) << bad.name;
    EXPECT_THAT(answer, Not(HasSubstr("smuggled"))) << bad.name;
  }
}

TEST(Server, RefusesBrokenChunks) {
  for (const std::string_view body :
       {"g\r\n", "-1\r\n", "1\nx\r\n0\r\n\r\n", "1\r\nxy\r\n0\r\n\r\n", "\r\n", " 1\r\nx\r\n",
        "0x1\r\nx\r\n", "1\r\nx\r\n0\r\n\n", "ffffffffffffffff1\r\n", "1;\x01\r\nx\r\n"}) {
    RawClient client(echo);
    const std::string answer =
        client.talk(cat("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", body));
    EXPECT_THAT(answer, HasSubstr("[broken chunked coding]")) << body;
    EXPECT_THAT(answer, HasSubstr("Connection: close\r\n")) << body;
  }
}

TEST(Server, AcceptsAbsoluteTargets) {
  RawClient client(echo);
  EXPECT_THAT(client.talk("GET http://real:80/p?q HTTP/1.1\r\nHost: other\r\n\r\n"
                          "GET HTTPS://real?q HTTP/1.1\r\nHost: other\r\n\r\n"),
              ::testing::AllOf(HasSubstr("GET /p?q real:80 []"), HasSubstr("GET /?q real []")));
}

TEST(Server, LimitsTheHead) {
  const std::string start = "GET / HTTP/1.1\r\nHost: x\r\nX: ";
  const size_t limit = 64 * 1024;
  RawClient client(echo);
  const std::string fits(limit - start.size() - 4, 'a');
  EXPECT_THAT(client.talk(start + fits + "\r\n\r\n"), StartsWith("HTTP/1.1 200"));
  client.reconnect();
  EXPECT_THAT(client.talk(start + fits + "a\r\n\r\n"), StartsWith("HTTP/1.1 431"));
  client.reconnect();
  EXPECT_THAT(client.talk(std::string(limit + 1, 'a')), StartsWith("HTTP/1.1 431"));
  client.reconnect();
  std::string lines = start;
  while (lines.size() <= limit) lines += "\r\nY: z";
  EXPECT_THAT(client.talk(lines), StartsWith("HTTP/1.1 431"));
}

TEST(Server, DropsSlowHeads) {
  RawClient client(echo, {.header_timeout = std::chrono::seconds(0)});
  client.send("GET / HT");
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408"));
}

TEST(Server, DropsSlowHeadsOfTls) {
  RawClient client(echo, {.header_timeout = std::chrono::seconds(0)});
  const int socket = client.use_tls();
  // The first bytes of a record of 64.
  ASSERT_EQ(::send(socket, "\x17\x03\x03\0\x40 ab", 8, MSG_NOSIGNAL), 8);
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 408"));
}

TEST(Server, ClosesIdleConnections) {
  RawClient client(echo, {.idle_timeout = std::chrono::seconds(0)});
  EXPECT_EQ(client.read_to_end(), "");
}

TEST(Server, IdleConnectionsOutliveTheClientsPools) {
  // The official clients keep connections for 300 s: the end must not come from here, just as one
  // is used again.
  EXPECT_GE(ServerOptions{}.idle_timeout, std::chrono::seconds(640));
}

TEST(Server, LimitsTheWaitForABody) {
  RawClient client(echo, {.body_read_timeout = std::chrono::seconds(1)});
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
  EXPECT_THAT(client.read_through("]"), EndsWith("[the peer was too slow]"));
}

TEST(Server, HandlersMayLimitTheTimeOfABody) {
  const auto limited = [](Exchange& exchange) -> Task<void> {
    exchange.limit_body_time(/*idle=*/std::chrono::hours(1), std::chrono::milliseconds(30));
    const auto body = co_await exchange.body().read_all(1000);
    (void)co_await exchange.respond({.status = 200,
                                     .headers = {},
                                     .body = body ? *body : cat("[", body.error().message(), "]")});
  };
  RawClient client(limited);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
  EXPECT_THAT(client.read_through("]"), EndsWith("[the peer was too slow]"));
  // The limit is the request's.
  client.reconnect();
  for (int i = 0; i < 2; ++i) {
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n]");
    EXPECT_THAT(client.read_through("]"), StartsWith("HTTP/1.1 200"));
    client.loop().restart();
    client.loop().run_for(std::chrono::milliseconds(40));
  }
}

TEST(Server, SeesABodyThatIsCutShort) {
  RawClient client(echo);
  EXPECT_THAT(client.talk("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab"),
              EndsWith("[the peer closed the connection inside a body]"));
}

Task<void> do_nothing(Exchange&) { co_return; }

Task<void> throw_error(Exchange&) {
  throw std::runtime_error("oops");
  co_return;
}

TEST(Server, AHandlerThatFailsIsA500) {
  std::string logged;
  set_log_sink([&logged](LogLevel, std::string_view message) { logged += message; });
  for (const Handler& handler : {Handler(do_nothing), Handler(throw_error)}) {
    RawClient client(handler);
    client.send("GET /p HTTP/1.1\r\nHost: x\r\n\r\n");
    EXPECT_THAT(client.read_through("}"), StartsWith("HTTP/1.1 500 "));
  }
  EXPECT_EQ(logged, "handler of GET /p failed: oops");
  set_log_sink([](LogLevel, std::string_view) {});
}

Task<void> write_too_much(Exchange& exchange) {
  ResponseHead head;
  EXPECT_TRUE(co_await exchange.start(std::move(head), 3));
  EXPECT_TRUE(co_await exchange.write("ab"));
  EXPECT_FALSE(co_await exchange.write("cd"));
}
Task<void> write_too_little(Exchange& exchange) {
  ResponseHead head;
  EXPECT_TRUE(co_await exchange.start(std::move(head), 3));
  EXPECT_FALSE(co_await exchange.finish("ab"));
}
Task<void> leave_early(Exchange& exchange) {
  ResponseHead head;
  EXPECT_TRUE(co_await exchange.start_with(std::move(head), std::nullopt, "ab"));
}

TEST(Server, ABodyThatIsNotWholeIsNeverEndedCleanly) {
  for (const auto handler : {write_too_much, write_too_little, leave_early}) {
    RawClient client(handler);
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    const std::string answer = client.read_to_end();
    EXPECT_THAT(answer, Not(EndsWith("0\r\n\r\n")));
    EXPECT_THAT(answer, ::testing::AnyOf(EndsWith("ab"), EndsWith("ab\r\n"), ""));
  }
}

Task<void> inject_header(Exchange& exchange) {
  Response response{.status = 200, .headers = {{"X", "a\r\nSet-Cookie: b"}}, .body = ""};
  EXPECT_FALSE(co_await exchange.respond(std::move(response)));
  EXPECT_FALSE(exchange.started());
}

TEST(Server, HeaderValuesCannotBreakOut) {
  RawClient client(inject_header);
  const std::string answer = client.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 500"));
  EXPECT_THAT(answer, Not(HasSubstr("Set-Cookie")));
}

Task<void> close_after_answer(Exchange& exchange) {
  exchange.close_after();
  Response response;
  (void)co_await exchange.respond(std::move(response));
}

TEST(Server, ADeliberateCloseIsAnnounced) {
  RawClient client(close_after_answer);
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("\r\n\r\n"), HasSubstr("Connection: close\r\n"));
}

UniqueFd file_with(std::string_view content) {
  UniqueFd fd(::memfd_create("content", MFD_CLOEXEC));
  EXPECT_EQ(::write(fd.get(), content.data(), content.size()), ssize_t(content.size()));
  return fd;
}

struct FileHandler {
  int fd;
  uint64_t offset;
  uint64_t count;
  uint64_t announced;

  static Task<void> serve(FileHandler file, Exchange& exchange) {
    ResponseHead head;
    (void)co_await exchange.start(std::move(head), file.announced);
    (void)co_await exchange.send_file(file.fd, file.offset, file.count);
    (void)co_await exchange.finish();
  }
  Task<void> operator()(Exchange& exchange) const { return serve(*this, exchange); }
};

TEST(Server, SendsFiles) {
  std::string content(3'000'000, 'x');
  for (size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>('a' + i % 26);
  const UniqueFd fd = file_with(content);
  RawClient client(FileHandler{fd.get(), 10, content.size() - 10, content.size() - 10});
  const std::string answer = client.talk("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const size_t body = answer.find("\r\n\r\n") + 4;
  EXPECT_EQ(answer.substr(body), content.substr(10));
}

TEST(Server, HeadOfAFileSendsNoBody) {
  const UniqueFd fd = file_with("content");
  RawClient client(FileHandler{fd.get(), 0, 7, 7});
  EXPECT_EQ(client.talk("HEAD / HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n");
}

TEST(Server, AFileThatIsTooShortCutsTheConnection) {
  const UniqueFd fd = file_with("short");
  RawClient client(FileHandler{fd.get(), 0, 10, 10});
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string answer = client.read_to_end();
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
}

TEST(Server, ServesAListener) {
  boost::asio::io_context loop(1);
  Server server(loop, echo);
  auto listener = net::make_listener("127.0.0.1", 0);
  const uint16_t port = net::local_port(*listener).value();
  ASSERT_TRUE(server.serve(std::move(*listener)));
  auto fd = net::start_connect("127.0.0.1", port);
  net::TcpStream stream(loop.get_executor(), std::move(*fd));
  ASSERT_TRUE(net::testing::run(loop, stream.finish_connect(std::chrono::seconds(10))));
  ASSERT_TRUE(net::testing::run(loop, stream.write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
  ASSERT_TRUE(net::testing::run(loop, stream.wait_readable()));
  EXPECT_EQ(server.connection_count(), 1u);
  // An idle connection is closed by stop(), and nobody is accepted any more.
  server.stop();
  net::testing::run_until(loop, [&] { return server.connection_count() == 0; });
  EXPECT_FALSE(net::start_connect("127.0.0.1", port).and_then([&](UniqueFd again) {
    return net::testing::run(loop, net::finish_connect(std::move(again), std::chrono::seconds(5)));
  }));
}

TEST(Server, StoppingAnswersWhatWasOnItsWay) {
  boost::asio::io_context loop(1);
  Server server(loop, echo);
  auto [server_end, client_end] = net::testing::make_stream_pair(loop);
  server.serve_connection(std::move(server_end));
  const auto exchange = [&, client = client_end.get()] {
    EXPECT_TRUE(net::testing::run(loop, client->write("GET / HTTP/1.1\r\nHost: x\r\n\r\n")));
    std::array<char, 4096> buffer;
    const auto count = net::testing::run(loop, client->read_some(buffer));
    return std::string(buffer.data(), count.value_or(0));
  };
  const std::string before = exchange();
  EXPECT_TRUE(before.starts_with("HTTP/1.1 200 ")) << before;
  EXPECT_EQ(before.find("Connection: close"), std::string::npos);
  server.stop();
  const std::string last = exchange();
  EXPECT_TRUE(last.starts_with("HTTP/1.1 200 ")) << last;
  EXPECT_NE(last.find("Connection: close\r\n"), std::string::npos);
  client_end->close();
  net::testing::run_until(loop, [&] { return server.connection_count() == 0; });
}

TEST(Server, WaitsQuietlyWhenDescriptorsRunOut) {
  boost::asio::io_context loop(1);
  Server server(loop, echo);
  auto listener = net::make_listener("127.0.0.1", 0);
  const uint16_t port = net::local_port(*listener).value();
  ASSERT_TRUE(server.serve(std::move(*listener)));
  auto fd = net::start_connect("127.0.0.1", port);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  set_log_sink([](LogLevel, std::string_view) {});
  const size_t turns = loop.run_for(std::chrono::milliseconds(250));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_LT(turns, 50u);
  EXPECT_EQ(server.connection_count(), 0u);
  net::testing::run_until(loop, [&] { return server.connection_count() == 1; });
}

TEST(Server, PeersThatVanishedAreFoundInMinutes) {
  boost::asio::io_context loop(1);
  std::map<int, int> times;
  int on = 0;
  ServerOptions options;
  options.make_stream = [&](const boost::asio::any_io_executor& executor, UniqueFd fd) {
    socklen_t size = sizeof on;
    EXPECT_EQ(::getsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, &size), 0);
    for (const int option : {TCP_KEEPIDLE, TCP_KEEPINTVL, TCP_KEEPCNT, TCP_USER_TIMEOUT}) {
      size = sizeof times[option];
      EXPECT_EQ(::getsockopt(fd.get(), IPPROTO_TCP, option, &times[option], &size), 0);
    }
    return std::make_unique<net::TcpStream>(executor, std::move(fd));
  };
  Server server(loop, echo, options);
  auto listener = net::make_listener("127.0.0.1", 0);
  const uint16_t port = net::local_port(*listener).value();
  ASSERT_TRUE(server.serve(std::move(*listener)));
  const auto client = net::start_connect("127.0.0.1", port);
  net::testing::run_until(loop, [&] { return server.connection_count() == 1; });
  EXPECT_EQ(on, 1);
  const int found = times[TCP_KEEPIDLE] + times[TCP_KEEPINTVL] * times[TCP_KEEPCNT];
  EXPECT_GT(found, 60);
  EXPECT_LE(found, 300);
  // It would cut a client that is alive and does not read.
  EXPECT_EQ(times[TCP_USER_TIMEOUT], 0);
}

TEST(Server, RefusesASocketThatDoesNotListen) {
  boost::asio::io_context loop(1);
  Server server(loop, echo);
  auto [one, other] = net::testing::make_socket_pair();
  EXPECT_FALSE(server.serve(std::move(one)));
}

TEST(Server, ConnectionsOverTheLimitAreToldSo) {
  RawClient client(echo, {.max_connections = 1});
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("]"), StartsWith("HTTP/1.1 200"));
  auto [first, served] = testing::make_stream_pair(client.loop());
  client.server().serve_connection(std::move(served));
  client.use(std::move(first));
  client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string refusal = client.read_to_end();
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refusal, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(refusal, HasSubstr("\r\nConnection: close\r\n"));
  EXPECT_THAT(refusal, EndsWith(R"({"code":503,"message":"The server has too many connections"})"));

  // Who says nothing is not waited for, and there is a limit for those who are told, too.
  std::vector<std::unique_ptr<net::Stream>> silent;
  for (size_t i = 0; i < Server::kMostRefused + 1; ++i) {
    auto [one, other] = testing::make_stream_pair(client.loop());
    client.server().serve_connection(std::move(other));
    silent.push_back(std::move(one));
  }
  EXPECT_EQ(client.server().connection_count(), 1 + Server::kMostRefused);
  net::testing::run_until(client.loop(), [&] { return client.server().connection_count() == 1; });
}

TEST(Server, ADescriptorThatIsNeededElsewhereServesNoRequest) {
  RawClient client(echo, {.descriptor_limit = 3});
  auto listener = net::make_listener("127.0.0.1", /*port=*/0);
  const uint16_t port = net::local_port(*listener).value();
  ASSERT_TRUE(client.server().serve(std::move(*listener)));
  auto socket = net::start_connect("127.0.0.1", port);
  client.use(std::make_unique<net::TcpStream>(client.loop().get_executor(), std::move(*socket)));
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_to_end(), StartsWith("HTTP/1.1 503 "));
}

}  // namespace
}  // namespace alcove::http

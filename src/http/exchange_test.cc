// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include <boost/asio/this_coro.hpp>

#include "base/strings.h"
#include "http/testing/raw_client.h"
#include "net/notifier.h"
#include "net/task_group.h"
#include "net/timer.h"

namespace alcove::http {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::RawClient;
using namespace std::string_view_literals;

// Streams nothing until the client is gone.
struct DisconnectHandler {
  bool* gone;
  static Task<void> serve(bool* gone, Exchange& exchange) {
    (void)co_await exchange.body().read_all(1000);
    co_await exchange.wait_disconnect();
    *gone = true;
  }
  Task<void> operator()(Exchange& exchange) const { return serve(gone, exchange); }
};

TEST(WaitDisconnect, NoticesAnOrderlyEnd) {
  bool gone = false;
  RawClient client(DisconnectHandler{&gone});
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab");
  client.loop().poll();
  EXPECT_FALSE(gone);
  client.stream().close();
  net::testing::run_until(client.loop(), [&] { return gone; });
}

TEST(WaitDisconnect, IsNotConfusedByPipelinedRequests) {
  bool gone = false;
  RawClient client(DisconnectHandler{&gone});
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  client.loop().poll();
  client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  client.loop().poll();
  EXPECT_FALSE(gone);
  client.stream().shutdown_write();
  net::testing::run_until(client.loop(), [&] { return gone; });
}

TEST(WaitDisconnect, NoticesTheEndBehindMuchReadAhead) {
  bool gone = false;
  RawClient client(DisconnectHandler{&gone});
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100'000, 'x'));
  client.loop().poll();
  EXPECT_FALSE(gone);
  client.stream().close();
  net::testing::run_until(client.loop(), [&] { return gone; });
}

TEST(WaitDisconnect, NoticesTheEndBehindMuchReadAheadOfTls) {
  bool gone = false;
  RawClient client(DisconnectHandler{&gone});
  client.use_tls();
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n" + std::string(100'000, 'x'));
  client.loop().poll();
  EXPECT_FALSE(gone);
  client.stream().close();
  net::testing::run_until(client.loop(), [&] { return gone; });
}

// Starts watching the client and answers without ending the watch.
struct WatchedHandler {
  net::TaskGroup* tasks;
  int* ended;
  static Task<void> watch(Exchange& exchange, int* ended) {
    co_await exchange.wait_disconnect();
    ++*ended;
  }
  static Task<void> serve(WatchedHandler self, Exchange& exchange) {
    self.tasks->spawn(watch(exchange, self.ended));
    self.tasks->spawn(watch(exchange, self.ended));
    // Both watch before the answer is sent.
    co_await net::yield();
    co_await net::yield();
    Response response{.status = 200, .headers = {}, .body = std::string(exchange.request().path())};
    (void)co_await exchange.respond(std::move(response));
  }
  Task<void> operator()(Exchange& exchange) const { return serve(*this, exchange); }
};

TEST(WaitDisconnect, EndsWithTheRequestAndLosesNoBytes) {
  std::unique_ptr<net::TaskGroup> tasks;
  int ended = 0;
  WatchedHandler handler{nullptr, &ended};
  RawClient client([&](Exchange& exchange) { return handler(exchange); });
  tasks = std::make_unique<net::TaskGroup>(client.loop().get_executor());
  handler.tasks = tasks.get();
  client.send(
      "GET /first HTTP/1.1\r\nHost: x\r\n\r\nGET /second HTTP/1.1\r\nHost: x\r\n\r\nGET /th");
  EXPECT_THAT(client.read_through("/second"), HasSubstr("/first"));
  client.send("ird HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("/third"), EndsWith("/third"));
  net::testing::run_until(client.loop(), [&] { return ended == 6; });
  EXPECT_EQ(tasks->size(), 0u);
}

struct CancelingHandler {
  static Task<void> watch(Exchange& exchange) { co_await exchange.wait_disconnect(); }
  static Task<void> serve(Exchange& exchange, boost::asio::any_io_executor executor) {
    net::TaskGroup tasks(executor);
    tasks.spawn(watch(exchange));
    co_await net::yield();
    co_await net::yield();
    co_await tasks.stop();
    Response response{.status = 200, .headers = {}, .body = std::string(exchange.request().path())};
    (void)co_await exchange.respond(std::move(response));
  }
};

TEST(WaitDisconnect, MayBeCanceled) {
  boost::asio::any_io_executor executor;
  RawClient client([&](Exchange& exchange) { return CancelingHandler::serve(exchange, executor); });
  executor = client.loop().get_executor();
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("/1"), EndsWith("/1"));
  client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("/2"), EndsWith("/2"));
}

// Calls itself readable when it is not, as a socket may after a partial read.
class EagerStream final : public net::TcpStream {
 public:
  using TcpStream::TcpStream;
  Task<Result<void>> wait_readable() override { co_return Result<void>(); }
};

TEST(WaitDisconnect, MayBeCanceledAfterAFalseAlarm) {
  boost::asio::any_io_executor executor;
  RawClient client([&](Exchange& exchange) { return CancelingHandler::serve(exchange, executor); });
  executor = client.loop().get_executor();
  auto [own, served] = net::testing::make_socket_pair();
  client.server().serve_connection(std::make_unique<EagerStream>(executor, std::move(served)));
  client.use(std::make_unique<net::TcpStream>(executor, std::move(own)));
  client.send("GET /1 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("/1"), EndsWith("/1"));
  client.send("GET /2 HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(client.read_through("/2"), EndsWith("/2"));
}

struct GateHandler {
  net::Notifier* gate;
  static Task<void> serve(net::Notifier* gate, Exchange& exchange) {
    co_await gate->wait();
    Response response{.status = 200, .headers = {}, .body = "done"};
    (void)co_await exchange.respond(std::move(response));
  }
  Task<void> operator()(Exchange& exchange) const { return serve(gate, exchange); }
};

TEST(Exchange, AStoppedServerFinishesTheRequestUnderWay) {
  std::optional<net::Notifier> gate;
  RawClient client([&](Exchange& exchange) { return GateHandler{&*gate}(exchange); });
  gate.emplace(client.loop().get_executor());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  client.loop().poll();
  client.server().stop();
  client.loop().poll();
  EXPECT_EQ(client.server().connection_count(), 1u);
  gate->notify_all();
  EXPECT_THAT(client.read_through("done"), HasSubstr("Connection: close\r\n"));
  client.stream().shutdown_write();
  EXPECT_EQ(client.read_to_end(), "");
  net::testing::run_until(client.loop(), [&] { return client.server().connection_count() == 0; });
  gate.reset();
}

Task<void> tunnel(Exchange& exchange) {
  ResponseHead head{.status = 101, .headers = {{"Connection", "Upgrade"}, {"Upgrade", "echo"}}};
  (void)co_await exchange.start(std::move(head), std::nullopt);
  net::Stream& stream = exchange.raw_stream();
  std::string data = exchange.take_read_ahead();
  while (!data.ends_with('!')) {
    char buffer[64];
    const auto count = co_await stream.read_some(buffer);
    if (!count || *count == 0) co_return;
    data.append(buffer, *count);
  }
  (void)co_await stream.write(data);
}

TEST(Exchange, BecomesATunnelAfter101) {
  RawClient client(tunnel);
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nabc");
  EXPECT_EQ(client.read_through("\r\n\r\n"),
            "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n");
  client.send("def!");
  EXPECT_EQ(client.read_to_end(), "abcdef!");
}

// Answers while the body is still coming, then reads the rest.
Task<void> answer_early(Exchange& exchange) {
  char buffer[16];
  const auto first = co_await exchange.body().read(buffer);
  ResponseHead head;
  (void)co_await exchange.start_with(std::move(head), std::nullopt,
                                     std::string_view(buffer, first.value_or(0)));
  auto rest = co_await exchange.body().read_all(1000);
  (void)co_await exchange.finish(rest.value_or("broken"));
}

TEST(Exchange, MayAnswerBeforeTheBodyEnds) {
  RawClient client(answer_early);
  client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  EXPECT_THAT(client.read_through("abc\r\n"), HasSubstr("200 OK"));
  client.send("2\r\nde\r\n0\r\n\r\n");
  EXPECT_EQ(client.read_to_end(), "2\r\nde\r\n0\r\n\r\n");
}

TEST(Exchange, AnAnswerLosesNothingOfTheBodyThatIsReadBesideIt) {
  RawClient client(answer_early);
  // Received as a whole, and read in two parts with the answer's head in between.
  for (const std::string_view body :
       {"Content-Length: 26\r\n\r\nabcdefghijklmnopqrstuvwxyz",
        "Transfer-Encoding: chunked\r\n\r\n1a\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\n\r\n"}) {
    client.send(cat("POST / HTTP/1.1\r\nHost: x\r\n", body));
    EXPECT_EQ(client.read_through("0\r\n\r\n"),
              "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
              "10\r\nabcdefghijklmnop\r\na\r\nqrstuvwxyz\r\n0\r\n\r\n");
  }
}

// Ends each read that waits, and reads on.
Task<void> read_with_breaks(Exchange& exchange) {
  net::TaskGroup tasks(co_await boost::asio::this_coro::executor);
  tasks.spawn([](Exchange& read) -> Task<void> {
    for (;;) {
      co_await net::yield();
      read.cancel_read();
    }
  }(exchange));
  std::string body;
  int breaks = 0;
  for (;;) {
    char buffer[16];
    const auto count = co_await exchange.body().read(buffer);
    if (count && *count == 0) break;
    if (count) body.append(buffer, *count);
    if (!count) EXPECT_EQ(count.error().code(), Code::kCanceled);
    breaks += count ? 0 : 1;
  }
  co_await tasks.stop();
  (void)co_await exchange.respond(
      {.status = 200, .headers = {}, .body = cat(body, breaks > 0 ? " with breaks" : "")});
}

TEST(Exchange, AReadThatIsEndedLosesNothing) {
  RawClient client(read_with_breaks);
  for (const bool tls : {false, true}) {
    if (tls) client.use_tls();
    client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\n");
    for (const std::string_view part : {"ab", "cd", "ef"}) client.send(part);
    EXPECT_THAT(client.read_through("breaks"), EndsWith("\r\n\r\nabcdef with breaks"));
    client.send("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    for (const char c : "3\r\nabc\r\n14\r\ndefghijklmnopqrstuvw\r\n0\r\n\r\n"sv) {
      client.send(std::string_view(&c, 1));
    }
    EXPECT_THAT(client.read_through("breaks"),
                EndsWith("\r\n\r\nabcdefghijklmnopqrstuvw with breaks"));
  }
}

Task<void> answer_large(Exchange& exchange) {
  Response response{.status = 200, .headers = {}, .body = std::string(5'000'000, 'x')};
  const auto sent = co_await exchange.respond(std::move(response));
  EXPECT_EQ(sent.has_value(), exchange.request().path() == "/read");
}

TEST(Exchange, AClientThatReadsIsNotTimedOutAndAStuckOneIs) {
  RawClient client(answer_large, {.write_timeout = std::chrono::seconds(1)});
  EXPECT_GT(client.talk("GET /read HTTP/1.1\r\nHost: x\r\n\r\n").size(), 5'000'000u);
  client.reconnect();
  client.send("GET /stuck HTTP/1.1\r\nHost: x\r\n\r\n");
  net::testing::run_until(client.loop(), [&] { return client.server().connection_count() == 0; });
}

}  // namespace
}  // namespace alcove::http

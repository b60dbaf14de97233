// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/idle_limit.h"

#include <gtest/gtest.h>

#include <chrono>

#include <boost/asio/this_coro.hpp>

#include "http/testing/raw_client.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

constexpr std::chrono::milliseconds kLimit{300};

// Reads the body under the limit and says whether all of it came. Works on each piece for a while.
Task<void> read_slowly(http::Exchange& exchange, std::chrono::milliseconds work) {
  IdleLimitedBody body(co_await boost::asio::this_coro::executor, exchange, kLimit);
  char buffer[64];
  for (;;) {
    const auto count = co_await body.read(buffer);
    if (!count) co_return;
    if (*count == 0) break;
    if (work.count() > 0) co_await net::sleep_for(work);
  }
  http::Response response;
  response.body = "complete";
  (void)co_await exchange.respond(std::move(response));
}

Task<void> read_body(http::Exchange& exchange) {
  return read_slowly(exchange, std::chrono::milliseconds(0));
}
Task<void> work_longer_than_the_limit(http::Exchange& exchange) {
  return read_slowly(exchange, 3 * kLimit);
}

constexpr char kHead[] = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 8\r\n\r\n";

TEST(IdleLimitedBody, CutsAStalledBody) {
  http::testing::RawClient client(read_body);
  client.send(kHead);
  client.send("1234");
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(client.read_to_end(), "");
  EXPECT_GE(std::chrono::steady_clock::now() - before, kLimit / 2);
}

TEST(IdleLimitedBody, LetsASlowBodyLive) {
  http::testing::RawClient client(read_body);
  client.send(kHead);
  // Longer in all than the limit, but never that long without a byte.
  for (const char* byte : {"1", "2", "3", "4", "5", "6", "7"}) {
    client.send(byte);
    http::testing::run(client.loop(), net::sleep_for(kLimit / 4));
  }
  client.send("8");
  EXPECT_NE(client.read_through("complete").find("complete"), std::string::npos);
}

TEST(IdleLimitedBody, DoesNotCountTheTimeOfItsReader) {
  http::testing::RawClient client(work_longer_than_the_limit);
  client.send(kHead);
  client.send("12345678");
  EXPECT_NE(client.read_through("complete").find("complete"), std::string::npos);
}

TEST(IdleLimitedBody, CutsABodyThatStallsAfterItsReaderWorked) {
  http::testing::RawClient client(work_longer_than_the_limit);
  client.send(kHead);
  client.send("1234");
  EXPECT_EQ(client.read_to_end(), "");
}

}  // namespace
}  // namespace alcove::agent

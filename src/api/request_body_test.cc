// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/request_body.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "api/testing/api_fixture.h"
#include "net/event_loops.h"
#include "net/timer.h"

namespace alcove::api::testing {
namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr const char* kTooSlow = "the request body did not arrive in time";

class RequestBody : public ApiTest {
 protected:
  explicit RequestBody(BodyLimits limits = {}) : ApiTest(limits) { connect(); }

  // A blank of the body every `pause`, for as long as anybody wants them.
  static Task<void> drip(http::ClientConnection& client, std::shared_ptr<bool> wanted,
                         steady_clock::duration pause) {
    while (true) {
      co_await net::sleep_for(pause);
      if (!*wanted || !co_await client.write_body(" ")) co_return;
    }
  }

  static Task<Result<Reply>> create(http::ClientConnection& client, std::string key,
                                    http::BodyLength length) {
    http::RequestHead head;
    head.method = "POST";
    head.target = "/v2/sandboxes";
    head.headers = {{"Host", "localhost"}, {"X-API-Key", std::move(key)}};
    ALCOVE_CO_TRY(co_await client.write_head(head, length, R"({"templateID":)"));
    ALCOVE_CO_TRY_ASSIGN(auto answer, co_await client.read_head("POST"));
    ALCOVE_CO_TRY_ASSIGN(auto text, co_await client.body().read_all(1 << 20));
    co_return Reply{answer.status, std::move(answer.headers), std::move(text)};
  }

  // The answer to a create whose body begins, goes on as drip() says, and never ends.
  Reply create_slowly(http::BodyLength length, steady_clock::duration pause) {
    const auto wanted = std::make_shared<bool>(true);
    net::spawn(loop_, drip(*client_, wanted, pause));
    const auto reply = net::testing::run(loop_, create(*client_, key_.secret, length));
    *wanted = false;
    // Until the drip has seen it.
    loop_.restart();
    loop_.run_for(pause < 1s ? pause * 2 : 10ms);
    EXPECT_TRUE(reply) << reply.error().message();
    return reply ? *reply : Reply{};
  }
};

class SilentBody : public RequestBody {
 protected:
  SilentBody() : RequestBody({.idle = 300ms, .total = 1min}) {}
};

TEST_F(SilentBody, Is408AndTheEndOfTheConnection) {
  for (const http::BodyLength length : {http::BodyLength(1000), http::BodyLength()}) {
    connect();
    const Reply reply = create_slowly(length, 1h);
    expect_error(reply, 408, kTooSlow);
    EXPECT_EQ(reply.header("Connection"), "close");
  }
  EXPECT_TRUE(node_.list().empty());
}

TEST_F(SilentBody, ByteNowAndThenIsNotSilence) {
  const auto talk = [](http::ClientConnection& client, std::string key) -> Task<Result<int>> {
    http::RequestHead head;
    head.method = "POST";
    head.target = "/v2/sandboxes";
    head.headers = {{"Host", "localhost"}, {"X-API-Key", std::move(key)}};
    ALCOVE_CO_TRY(co_await client.write_head(head, std::nullopt, R"({"templateID":"base")"));
    for (int i = 0; i < 8; ++i) {
      co_await net::sleep_for(60ms);
      ALCOVE_CO_TRY(co_await client.write_body(" "));
    }
    ALCOVE_CO_TRY(co_await client.finish_body("}"));
    ALCOVE_CO_TRY_ASSIGN(const auto answer, co_await client.read_head("POST"));
    co_return answer.status;
  };
  const auto status = net::testing::run(loop_, talk(*client_, key_.secret));
  ASSERT_TRUE(status) << status.error().message();
  EXPECT_EQ(*status, 201);
  client_.reset();
}

TEST_F(SilentBody, TimeOfTheHandlerDoesNotCount) {
  add_sandbox("i1");
  node_.during_kill = []() -> Task<void> { co_await net::sleep_for(400ms); };
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":5})").status, 204);
  EXPECT_EQ(send("DELETE", "/sandboxes/i1").status, 204);
}

class DrippingBody : public RequestBody {
 protected:
  DrippingBody() : RequestBody({.idle = 1min, .total = 100ms}) {}
};

TEST_F(DrippingBody, EndsAtTheTotal) {
  for (const http::BodyLength length : {http::BodyLength(1000), http::BodyLength()}) {
    connect();
    const auto begin = steady_clock::now();
    expect_error(create_slowly(length, 10ms), 408, kTooSlow);
    EXPECT_GE(steady_clock::now() - begin, 100ms);
  }
  EXPECT_TRUE(node_.list().empty());
}

class SmallBody : public RequestBody {
 protected:
  SmallBody() : RequestBody({.size = 1 << 20}) {}
};

TEST_F(SmallBody, IsTheLimit) {
  expect_error(send("POST", "/v2/sandboxes", std::string((1 << 20) + 1, ' ')), 413,
               "the request body is larger than 1 MiB");
}

}  // namespace
}  // namespace alcove::api::testing

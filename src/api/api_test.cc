// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/api.h"

#include <stdexcept>

#include "api/router.h"
#include "api/testing/api_fixture.h"
#include "net/timer.h"

namespace alcove::api::testing {
namespace {

using ::testing::HasSubstr;

class ApiFrame : public ApiTest {};

TEST_F(ApiFrame, MissingKeyIs401) {
  expect_error(send_with("GET", "/sandboxes", "", {{"Host", "localhost"}}), 401,
               "API key is missing: send it in the X-API-Key header.");
  expect_error(send_with("POST", "/v2/sandboxes", "{}", {{"Host", "x"}, {"X-API-Key", ""}}), 401,
               "API key is missing: send it in the X-API-Key header.");
}

TEST_F(ApiFrame, UnknownKeyIs401) {
  expect_error(send_with("GET", "/sandboxes", "", {{"Host", "x"}, {"X-API-Key", "e2b_00"}}), 401,
               "Invalid API key.");
}

TEST_F(ApiFrame, EveryRouteButHealthWantsAKey) {
  for (const Route& route : routes()) {
    std::string path(route.pattern);
    if (const size_t at = path.find("{id}"); at != std::string::npos) path.replace(at, 4, "i1");
    const Reply reply = send_with(std::string(route.method), path, "", {{"Host", "x"}});
    EXPECT_EQ(reply.status, path == "/health" ? 200 : 401) << route.method << " " << path;
  }
}

TEST_F(ApiFrame, BearerIsNoSubstituteForTheKeyHeader) {
  const Reply reply = send_with("GET", "/sandboxes", "",
                                {{"Host", "x"}, {"Authorization", "Bearer " + key_.secret}});
  EXPECT_EQ(reply.status, 401);
}

TEST_F(ApiFrame, KeyMadeWhileTheServerRunsWorksAtOnce) {
  // Fills the interval in which the store is not read again.
  EXPECT_EQ(send_with("GET", "/sandboxes", "", {{"Host", "x"}, {"X-API-Key", "e2b_00"}}).status,
            401);
  const NewKey fresh = make_key(store_, clock_, "third", "new").value();
  EXPECT_EQ(send_with("GET", "/sandboxes", "", {{"Host", "x"}, {"X-API-Key", fresh.secret}}).status,
            200);
}

TEST_F(ApiFrame, StoreThatCannotBeReadIsNotAWrongKey) {
  store_.before_call = [](std::string_view) -> Result<void> {
    return fail(Code::kInternal, "disk on fire");
  };
  const Reply reply = send_with("GET", "/sandboxes", "", {{"Host", "x"}, {"X-API-Key", "e2b_00"}});
  EXPECT_EQ(reply.status, 500);
  EXPECT_THAT(reply.message(), Not(HasSubstr("fire")));
}

TEST_F(ApiFrame, UnknownRouteIs404Json) {
  expect_error(send("GET", "/nothing/here"), 404, "no route for GET /nothing/here");
  expect_error(send("GET", "/"), 404, "no route for GET /");
}

TEST_F(ApiFrame, WrongMethodIs405WithTheRightOnes) {
  const Reply reply = send("PATCH", "/sandboxes");
  expect_error(reply, 405, "method PATCH is not allowed for /sandboxes");
  EXPECT_EQ(reply.header("Allow"), "POST, GET");
}

TEST_F(ApiFrame, HeadIsGetWithoutTheBody) {
  const Reply reply = send("HEAD", "/v2/sandboxes");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.text, "");
  EXPECT_EQ(reply.header("X-Total-Running"), "0");
  EXPECT_EQ(reply.header("Content-Length"), "2");
}

TEST_F(ApiFrame, BrokenEscapeInThePathIs400) {
  expect_error(send("GET", "/sandboxes/%zz"), 400, "the path is not properly encoded");
}

TEST_F(ApiFrame, BytesThatAreNoTextDoNotBreakTheAnswer) {
  const Reply reply = send("GET", "/v2/sandboxes?template=%ff%fe");
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.message(), HasSubstr("invalid template reference '?\?'"));
}

TEST_F(ApiFrame, LongInputIsNotSentBackWhole) {
  const Reply reply = send("GET", "/" + std::string(30000, 'x'));
  EXPECT_EQ(reply.status, 404);
  EXPECT_LT(reply.text.size(), 2000u);
}

TEST_F(ApiFrame, PreflightIsAnsweredForAnyPathWithoutAKey) {
  const Reply reply = send_with("OPTIONS", "/v2/sandboxes", "",
                                {{"Host", "x"},
                                 {"Origin", "https://app.example"},
                                 {"Access-Control-Request-Method", "POST"},
                                 {"Access-Control-Request-Headers", "x-api-key,sdk_runtime"}});
  EXPECT_EQ(reply.status, 204);
  EXPECT_EQ(reply.header("Access-Control-Allow-Origin"), "*");
  EXPECT_EQ(reply.header("Access-Control-Allow-Headers"), "x-api-key,sdk_runtime");
  EXPECT_THAT(reply.header("Access-Control-Allow-Methods"), HasSubstr("DELETE"));
}

TEST_F(ApiFrame, EveryAnswerMayBeReadByBrowsers) {
  for (const Reply& reply :
       {send("GET", "/v2/sandboxes"), send("GET", "/nothing"), send("DELETE", "/sandboxes/i1")}) {
    EXPECT_EQ(reply.header("Access-Control-Allow-Origin"), "*");
    EXPECT_THAT(reply.header("Access-Control-Expose-Headers"), HasSubstr("X-Next-Token"));
    EXPECT_THAT(reply.header("Access-Control-Expose-Headers"), HasSubstr("X-Total-Running"));
  }
}

TEST_F(ApiFrame, BodyBeyondTheLimitIs413) {
  expect_error(send("POST", "/sandboxes", std::string((16u << 20) + 1, ' ')), 413,
               "the request body is larger than 16 MiB");
}

TEST_F(ApiFrame, LargestBodyIsRead) {
  const Reply reply = send("POST", "/sandboxes", std::string(16u << 20, ' '));
  EXPECT_EQ(reply.status, 400);
  EXPECT_THAT(reply.message(), HasSubstr("validation error: the body is not valid JSON"));
}

TEST_F(ApiFrame, ChunkedBodyIsRead) {
  connect();
  const auto exchange = [](http::ClientConnection& client,
                           std::string key) -> Task<Result<http::ResponseHead>> {
    http::RequestHead head;
    head.method = "POST";
    head.target = "/v2/sandboxes";
    head.headers = {{"Host", "localhost"}, {"X-API-Key", key}};
    ALCOVE_CO_TRY(co_await client.write_head(head, std::nullopt));
    ALCOVE_CO_TRY(co_await client.write_body(R"({"templa)"));
    ALCOVE_CO_TRY(co_await client.finish_body(R"(teID":"base"})"));
    co_return co_await client.read_head("POST");
  };
  const auto head = net::testing::run(loop_, exchange(*client_, key_.secret));
  ASSERT_TRUE(head) << head.error().message();
  EXPECT_EQ(head->status, 201);
  client_.reset();
}

TEST_F(ApiFrame, HealthIsOpenAndSaysWhenItIsReady) {
  const Reply ready = send_with("GET", "/health", "", {{"Host", "x"}});
  EXPECT_EQ(ready.status, 200);
  EXPECT_EQ(ready.text, "Health check successful");
  EXPECT_THAT(ready.header("Content-Type"), HasSubstr("text/plain"));
  readiness_.set_progress("building template base");
  expect_error(send_with("GET", "/health", "", {{"Host", "x"}}), 503,
               "Not ready yet: building template base");
}

TEST_F(ApiFrame, ExceptionOfALibraryIsA500InJson) {
  add_sandbox("i1");
  node_.during_kill = []() -> Task<void> {
    co_await net::yield();
    throw std::length_error("internals");
  };
  expect_error(send("DELETE", "/sandboxes/i1"), 500, "internal error");
}

TEST_F(ApiFrame, OneConnectionServesManyRequests) {
  connect();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(send("GET", "/sandboxes").status, 200);
    EXPECT_TRUE(client_->reusable());
  }
}

}  // namespace
}  // namespace alcove::api::testing

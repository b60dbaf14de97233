// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/idempotency.h"

#include <future>
#include <stdexcept>

#include "api/json_reply.h"
#include "api/testing/api_fixture.h"
#include "net/event_loops.h"

namespace alcove::api::testing {
namespace {

using ::testing::StartsWith;

constexpr const char* kBody = R"({"templateID":"base"})";

http::Headers keyed_headers(const NewKey& caller, const std::string& key) {
  return {{"Host", "localhost"}, {"X-API-Key", caller.secret}, {"Idempotency-Key", key}};
}

class Idempotency : public ApiTest {
 protected:
  Reply create(const std::string& key, const std::string& body = kBody,
               const std::string& route = "/v2/sandboxes") {
    return send_with("POST", route, body, keyed_headers(key_, key));
  }

  // The same on a connection of its own, beside other requests.
  Task<void> create_on(http::ClientConnection& client, std::string key,
                       std::optional<Reply>& reply) {
    http::RequestHead head;
    head.method = "POST";
    head.target = "/v2/sandboxes";
    head.headers = keyed_headers(key_, key);
    auto got = co_await http::fetch(client, std::move(head), kBody, 1 << 20);
    reply.emplace(got ? Reply{got->status, got->headers, got->body} : Reply{});
  }

  static void expect_code(const Reply& reply, int status, const std::string& error_code) {
    EXPECT_EQ(reply.status, status) << reply.text;
    EXPECT_EQ(reply.field("error_code"), error_code);
  }

  // What a server leaves that dies between the claim and the answer.
  void begin_keyed(const std::string& key, SandboxId sandbox) {
    ASSERT_TRUE(store_.begin_keyed_create({.team = key_.team.id,
                                           .key = key,
                                           .fingerprint = create_fingerprint("v2", kBody),
                                           .sandbox = std::move(sandbox),
                                           .answer = std::nullopt,
                                           .begun_at = clock_.now()},
                                          clock_.now()));
  }

  // Makes every later call of that name to the store fail until it is taken back.
  void break_store(std::string_view name) {
    store_.before_call = [name](std::string_view call) -> Result<void> {
      if (call == name) return fail(Code::kInternal, "the disk is broken");
      return {};
    };
  }
};

TEST_F(Idempotency, RepeatGetsTheSameSandbox) {
  for (const char* route : {"/sandboxes", "/v2/sandboxes"}) {
    const std::string key = route == std::string("/sandboxes") ? "old" : "new";
    const Reply first = create(key, kBody, route);
    ASSERT_EQ(first.status, 201) << first.text;
    const size_t count = node_.list().size();
    const Reply second = create(key, kBody, route);
    EXPECT_EQ(second.status, 201);
    EXPECT_EQ(second.text, first.text);
    EXPECT_EQ(second.header("Content-Type"), "application/json");
    EXPECT_EQ(node_.list().size(), count);
  }
}

TEST_F(Idempotency, RepeatAfterTheSandboxDiedGetsTheSameAnswer) {
  const Reply first = create("k");
  ASSERT_EQ(first.status, 201);
  ASSERT_EQ(send("DELETE", "/sandboxes/" + first.field("sandboxID")).status, 204);
  const Reply second = create("k");
  EXPECT_EQ(second.status, 201);
  EXPECT_EQ(second.text, first.text);
  EXPECT_TRUE(node_.list().empty());
}

TEST_F(Idempotency, AnswerOutlivesTheApi) {
  const Reply first = create("k");
  ASSERT_EQ(first.status, 201);
  KeyedCreates after_restart(store_, pool_, clock_);
  const auto again = net::testing::run(
      loop_,
      after_restart.answer(key_.team.id, "k", create_fingerprint("v2", kBody),
                           [](SandboxId) -> Task<http::Response> { co_return no_content(); }));
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.body, first.text);
}

TEST_F(Idempotency, WithoutOrWithAnotherKeyEveryCreateIsNew) {
  EXPECT_EQ(create("k1").status, 201);
  EXPECT_EQ(create("k2").status, 201);
  EXPECT_EQ(send("POST", "/v2/sandboxes", kBody).status, 201);
  EXPECT_EQ(send("POST", "/v2/sandboxes", kBody).status, 201);
  EXPECT_EQ(node_.list().size(), 4u);
}

TEST_F(Idempotency, AnotherRequestWithTheKeyIs422) {
  ASSERT_EQ(create("k").status, 201);
  expect_code(create("k", R"({"templateID":"base","timeout":7})"), 422,
              "idempotency_request_mismatch");
  // The old route means something else by the same body.
  expect_code(create("k", kBody, "/sandboxes"), 422, "idempotency_request_mismatch");
  EXPECT_EQ(node_.list().size(), 1u);
}

TEST_F(Idempotency, KeysOfTeamsAreTheirOwn) {
  const Reply mine = create("k");
  const Reply theirs = send_with("POST", "/v2/sandboxes", kBody, keyed_headers(other_key_, "k"));
  ASSERT_EQ(mine.status, 201);
  ASSERT_EQ(theirs.status, 201);
  EXPECT_NE(mine.field("sandboxID"), theirs.field("sandboxID"));
}

TEST_F(Idempotency, MalformedKeyIs400) {
  for (const std::string& key :
       {std::string(), std::string("Upper"), std::string("under_score"), std::string("a b"),
        std::string("\xc3\xbc"), std::string(256, 'a')}) {
    const Reply reply = create(key);
    EXPECT_EQ(reply.status, 400) << key;
    EXPECT_THAT(reply.message(), StartsWith("validation error: Idempotency-Key"));
  }
  http::Headers twice = keyed_headers(key_, "a");
  twice.add("Idempotency-Key", "b");
  EXPECT_EQ(send_with("POST", "/v2/sandboxes", kBody, twice).status, 400);
  EXPECT_TRUE(node_.list().empty());
  EXPECT_EQ(create(std::string(255, 'a')).status, 201);
  EXPECT_EQ(create("-0z").status, 201);
}

TEST_F(Idempotency, KeyIsForgottenAfterADay) {
  const Reply first = create("k");
  const WallTime begun = clock_.now();
  clock_.set(begun + std::chrono::hours(24));
  EXPECT_EQ(create("k").text, first.text);
  clock_.set(begun + std::chrono::hours(24) + std::chrono::microseconds(1));
  const Reply fresh = create("k", R"({"templateID":"base","timeout":7})");
  ASSERT_EQ(fresh.status, 201) << fresh.text;
  EXPECT_NE(fresh.field("sandboxID"), first.field("sandboxID"));
}

TEST_F(Idempotency, FailedCreateFreesTheKey) {
  EXPECT_EQ(create("k", "{").status, 400);
  EXPECT_EQ(create("k", R"({"templateID":"nope"})").status, 404);
  node_.create_error = Error(Code::kUnavailable, "full");
  EXPECT_EQ(create("k").header("Retry-After"), "1");
  node_.create_error = Error(Code::kInternal, "broken");
  EXPECT_EQ(create("k").status, 500);
  node_.create_error.reset();
  EXPECT_EQ(create("k").status, 201);
}

TEST_F(Idempotency, CreateUnderWayIs409) {
  // The first create hangs after the sandbox was made, before its answer is kept.
  std::promise<void> go_on;
  std::promise<void> reached;
  store_.before_call = [&, gate = go_on.get_future().share()](std::string_view call) {
    if (call == "finish_keyed_create") {
      reached.set_value();
      gate.wait();
    }
    return Result<void>{};
  };
  auto [here, there] = net::testing::make_stream_pair(loop_);
  server_.serve_connection(std::move(there));
  http::ClientConnection first_client(std::move(here));
  std::optional<Reply> first;
  net::spawn(loop_, create_on(first_client, "k", first));
  auto waiting = reached.get_future();
  // Polls: the loop itself has nothing to do once the pool hangs.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (waiting.wait_for(std::chrono::milliseconds(1)) != std::future_status::ready) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    loop_.restart();
    loop_.poll();
  }

  expect_code(create("k"), 409, "idempotency_in_progress");
  expect_code(create("k", "{}"), 422, "idempotency_request_mismatch");
  EXPECT_FALSE(first);
  go_on.set_value();
  net::testing::run_until(loop_, [&] { return first.has_value(); });
  ASSERT_EQ(first->status, 201) << first->text;
  store_.before_call = nullptr;
  EXPECT_EQ(create("k").text, first->text);
  EXPECT_EQ(node_.list().size(), 1u);
}

TEST_F(Idempotency, CreateWhoseSandboxIsRecordedIsAnsweredByTheNextStart) {
  break_store("finish_keyed_create");
  const Reply first = create("k", R"({"templateID":"base","secure":true})");
  ASSERT_EQ(first.status, 201) << first.text;
  store_.before_call = nullptr;
  const SandboxId id(first.field("sandboxID"));
  ASSERT_TRUE(store_.put_sandbox(node_.find(id)->record()));
  // The next server.
  ASSERT_TRUE(settle_interrupted_creates(store_, {}));
  const Reply again = create("k", R"({"templateID":"base","secure":true})");
  EXPECT_EQ(again.status, 201);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(node_.list().size(), 1u);
}

TEST_F(Idempotency, CreateThatLeftNothingIsFreedByTheNextStart) {
  begin_keyed("k", SandboxId("i1"));
  expect_code(create("k"), 409, "idempotency_outcome_unknown");
  ASSERT_TRUE(settle_interrupted_creates(store_, {}));
  EXPECT_EQ(create("k").status, 201);
  EXPECT_EQ(node_.list().size(), 1u);
}

TEST_F(Idempotency, CreateWhoseSandboxHasEndedIsNotCarriedOutAgain) {
  begin_keyed("k", SandboxId("i1"));
  ASSERT_TRUE(store_.end_sandbox(
      {.id = SandboxId("i1"), .team = key_.team.id, .ended_at = clock_.now(), .log = ""}));
  ASSERT_TRUE(settle_interrupted_creates(store_, {}));
  expect_code(create("k"), 409, "idempotency_outcome_unknown");
  EXPECT_TRUE(node_.list().empty());
}

TEST_F(Idempotency, AnswersAreLeftAloneByTheNextStart) {
  const Reply first = create("k");
  ASSERT_EQ(first.status, 201);
  ASSERT_TRUE(settle_interrupted_creates(store_, {}));
  EXPECT_EQ(create("k").text, first.text);
}

TEST_F(Idempotency, TheSandboxIsChosenBeforeItIsMade) {
  std::optional<SandboxId> chosen;
  store_.before_call = [&](std::string_view call) {
    if (call == "finish_keyed_create") {
      store_.before_call = nullptr;
      chosen = store_.list_unanswered_creates().value().at(0).sandbox;
    }
    return Result<void>{};
  };
  EXPECT_EQ(SandboxId(create("k").field("sandboxID")), chosen);
}

TEST_F(Idempotency, CreateThatAnOlderVersionWasCutShortInIsSaidToBeUnknown) {
  begin_keyed("k", SandboxId());
  ASSERT_TRUE(settle_interrupted_creates(store_, {}));
  const Reply reply = create("k");
  expect_code(reply, 409, "idempotency_outcome_unknown");
  EXPECT_EQ(reply.header("Should-Retry"), "false");
  EXPECT_TRUE(node_.list().empty());
}

TEST_F(Idempotency, CreateThatThrowsIsSaidToBeUnknown) {
  KeyedCreates creates(store_, pool_, clock_);
  EXPECT_THROW(
      net::testing::run(loop_, creates.answer(key_.team.id, "k", create_fingerprint("v2", kBody),
                                              [](SandboxId) -> Task<http::Response> {
                                                throw std::runtime_error("cut short");
                                                co_return no_content();
                                              })),
      std::runtime_error);
  expect_code(create("k"), 409, "idempotency_outcome_unknown");
}

TEST_F(Idempotency, NothingIsMadeWhenTheKeyCannotBeKept) {
  break_store("begin_keyed_create");
  expect_code(create("k"), 500, "internal_server_error");
  EXPECT_TRUE(node_.list().empty());
  store_.before_call = nullptr;
  EXPECT_EQ(create("k").status, 201);
}

TEST_F(Idempotency, SandboxIsHandedOutEvenIfItsAnswerCannotBeKept) {
  break_store("finish_keyed_create");
  EXPECT_EQ(create("k").status, 201);
  expect_code(create("k"), 409, "idempotency_outcome_unknown");
  EXPECT_EQ(node_.list().size(), 1u);
}

}  // namespace
}  // namespace alcove::api::testing

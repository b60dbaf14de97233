// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_lifecycle.h"

#include "api/testing/api_fixture.h"
#include "net/timer.h"

namespace alcove::api::testing {
namespace {

using std::chrono::hours;
using std::chrono::seconds;
using ::testing::HasSubstr;

class SandboxLifecycle : public ApiTest {};

TEST_F(SandboxLifecycle, KillIs204AndThen404) {
  add_sandbox("i1");
  const Reply killed = send("DELETE", "/sandboxes/i1-6532622b");
  EXPECT_EQ(killed.status, 204);
  EXPECT_EQ(killed.text, "");
  EXPECT_FALSE(killed.headers.has("Content-Type"));
  expect_error(send("DELETE", "/sandboxes/i1"), 404, "sandbox 'i1' was not found");
  expect_error(send("DELETE", "/sandboxes/I1"), 400, "Invalid sandbox ID");
}

TEST_F(SandboxLifecycle, AnotherTeamCannotTouchIt) {
  const auto sandbox = add_sandbox("i1");
  EXPECT_EQ(send_as_other("DELETE", "/sandboxes/i1").status, 404);
  EXPECT_EQ(send_as_other("POST", "/sandboxes/i1/timeout", R"({"timeout":1})").status, 404);
  EXPECT_EQ(send_as_other("POST", "/sandboxes/i1/refreshes", "{}").status, 404);
  EXPECT_EQ(send_as_other("POST", "/sandboxes/i1/connect", R"({"timeout":1})").status, 404);
  EXPECT_EQ(send_as_other("POST", "/v2/sandboxes/i1/connect", "{}").status, 404);
  EXPECT_TRUE(sandbox->running());
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(300));
}

TEST_F(SandboxLifecycle, OneThatWasNotTakenOverYetIs503ForItsTeam) {
  node_.unclear = {{SandboxId("i1"), add_sandbox("i2")->record().team}};
  for (const auto& [method, path, body] : {std::tuple("GET", "/sandboxes/i1", ""),
                                           {"DELETE", "/sandboxes/i1", ""},
                                           {"POST", "/sandboxes/i1/timeout", R"({"timeout":1})"},
                                           {"POST", "/v2/sandboxes/i1/connect", "{}"},
                                           {"GET", "/sandboxes/i1/metrics", ""},
                                           {"GET", "/v2/sandboxes/i1/logs", ""}}) {
    const Reply reply = send(method, path, body);
    EXPECT_EQ(reply.status, 503) << path << reply.text;
    EXPECT_EQ(reply.header("Retry-After"), "1") << path;
    EXPECT_THAT(reply.text, HasSubstr("could not be taken over yet")) << path;
    EXPECT_NE(send_as_other(method, path, body).status, 503) << path;
  }
}

Task<void> hold(bool& entered, const bool& go_on) {
  entered = true;
  while (!go_on) co_await net::sleep_for(std::chrono::milliseconds(1));
}

TEST_F(SandboxLifecycle, SecondKillAtTheSameTimeSucceedsForTheOwnerOnly) {
  add_sandbox("i1");
  bool go_on = false;
  bool entered = false;
  node_.during_kill = [&] { return hold(entered, go_on); };
  auto [here, there] = net::testing::make_stream_pair(loop_);
  server_.serve_connection(std::move(there));
  http::ClientConnection first(std::move(here));
  http::RequestHead head;
  head.method = "DELETE";
  head.target = "/sandboxes/i1";
  head.headers = {{"Host", "localhost"}, {"X-API-Key", key_.secret}};
  std::optional<int> first_status;
  boost::asio::co_spawn(loop_, http::fetch(first, head, "", 1 << 20),
                        [&](std::exception_ptr, Result<http::Response> response) {
                          first_status = response ? response->status : -1;
                        });
  net::testing::run_until(loop_, [&] { return entered; });
  EXPECT_EQ(send_as_other("DELETE", "/sandboxes/i1").status, 404);
  EXPECT_EQ(send("DELETE", "/sandboxes/i1").status, 204);
  go_on = true;
  net::testing::run_until(loop_, [&] { return first_status.has_value(); });
  EXPECT_EQ(first_status, 204);
  EXPECT_EQ(send("DELETE", "/sandboxes/i1").status, 404);
}

TEST_F(SandboxLifecycle, FailureOfTheNodeIs500) {
  add_sandbox("i1");
  node_.kill_error = Error(Code::kUnavailable, "disk on fire");
  node_.set_end_error = Error(Code::kUnavailable, "disk on fire");
  for (const Reply& reply :
       {send("DELETE", "/sandboxes/i1"), send("POST", "/sandboxes/i1/timeout", R"({"timeout":5})"),
        send("POST", "/sandboxes/i1/refreshes", "{}"),
        send("POST", "/v2/sandboxes/i1/connect", "{}")}) {
    EXPECT_EQ(reply.status, 500);
    EXPECT_THAT(reply.message(), Not(HasSubstr("fire")));
  }
}

TEST_F(SandboxLifecycle, SandboxThatDiesMeanwhileIs404) {
  add_sandbox("i1");
  node_.set_end_error = Error(Code::kNotFound, "gone");
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":5})").status, 404);
  EXPECT_EQ(send("POST", "/v2/sandboxes/i1/connect", "{}").status, 404);
}

TEST_F(SandboxLifecycle, TimeoutLengthensAndShortens) {
  const auto sandbox = add_sandbox("i1");
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":1000})").status, 204);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(1000));
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":5})").status, 204);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(5));
}

TEST_F(SandboxLifecycle, TimeoutZeroExpiresNow) {
  const auto sandbox = add_sandbox("i1");
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":0})").status, 204);
  EXPECT_EQ(sandbox->end_at(), clock_.now());
}

TEST_F(SandboxLifecycle, AgeIsCappedWithoutAWord) {
  const auto sandbox = add_sandbox("i1", hours(23));
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", R"({"timeout":2000000000})").status, 204);
  EXPECT_EQ(sandbox->end_at(), sandbox->record().started_at + hours(24));
  sandbox->set_end(clock_.now());
  EXPECT_EQ(send("POST", "/sandboxes/i1/connect", R"({"timeout":86400})").status, 200);
  EXPECT_EQ(sandbox->end_at(), sandbox->record().started_at + hours(24));
  sandbox->set_end(clock_.now());
  clock_.advance(std::chrono::minutes(59));
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", R"({"duration":3600})").status, 204);
  EXPECT_EQ(sandbox->end_at(), sandbox->record().started_at + hours(24));
}

TEST_F(SandboxLifecycle, TimeoutBeyondTheMaximumAgeIs400) {
  add_sandbox("i1", hours(25));
  expect_error(send("POST", "/sandboxes/i1/timeout", R"({"timeout":60})"), 400,
               "Max instance length exceeded");
}

TEST_F(SandboxLifecycle, TimeoutBodyIsChecked) {
  add_sandbox("i1");
  expect_error(send("POST", "/sandboxes/i1/timeout", "{}"), 400,
               "validation error: 'timeout' is required");
  expect_error(send("POST", "/sandboxes/i1/timeout", R"({"timeout":-1})"), 400,
               "validation error: 'timeout' must be at least 0");
  expect_error(send("POST", "/sandboxes/i1/timeout", R"({"timeout":"5"})"), 400,
               "validation error: 'timeout' must be an integer");
  EXPECT_EQ(send("POST", "/sandboxes/i1/timeout", "").status, 400);
  EXPECT_EQ(send("POST", "/sandboxes/nobody/timeout", R"({"timeout":5})").status, 404);
}

TEST_F(SandboxLifecycle, RefreshNeverShortensAndLastsAtLeast15Seconds) {
  const auto sandbox = add_sandbox("i1");
  const WallTime before = sandbox->end_at();
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", R"({"duration":60})").status, 204);
  EXPECT_EQ(sandbox->end_at(), before);
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", R"({"duration":3600})").status, 204);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(3600));
  sandbox->set_end(clock_.now());
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", "").status, 204);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(15));
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", R"({"duration":3601})").status, 400);
  EXPECT_EQ(send("POST", "/sandboxes/i1/refreshes", R"({"duration":-1})").status, 400);
  EXPECT_EQ(send("POST", "/sandboxes/nobody/refreshes", "{}").status, 404);
}

TEST_F(SandboxLifecycle, ConnectShowsTheSandboxAndNeverShortens) {
  store::Sandbox record = add_sandbox("i1")->record();
  record.secure = true;
  record.envd_token = "token";
  const auto sandbox = node_.add(record);
  const std::string before = send("GET", "/sandboxes/i1").field("endAt");
  for (const Reply& reply : {send("POST", "/sandboxes/i1/connect", R"({"timeout":10})"),
                             send("POST", "/v2/sandboxes/i1/connect", R"({"timeout":0})"),
                             send("POST", "/v2/sandboxes/i1/connect", "")}) {
    EXPECT_EQ(reply.status, 200) << reply.text;
    EXPECT_EQ(reply.parsed(), json::parse(R"({"sandboxID":"i1","clientID":"6532622b",
        "templateID":"tpl00000000000000000","envdVersion":"0.6.13","alias":"base",
        "envdAccessToken":"token"})"));
  }
  EXPECT_EQ(send("GET", "/sandboxes/i1").field("endAt"), before);
}

TEST_F(SandboxLifecycle, ConnectLengthens) {
  const auto sandbox = add_sandbox("i1");
  EXPECT_EQ(send("POST", "/sandboxes/i1/connect", R"({"timeout":600})").status, 200);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(600));
}

TEST_F(SandboxLifecycle, NewConnectDefaultsTo300Seconds) {
  const auto sandbox = add_sandbox("i1");
  sandbox->set_end(clock_.now() + seconds(5));
  EXPECT_EQ(send("POST", "/v2/sandboxes/i1/connect", R"({"memory":false})").status, 200);
  EXPECT_EQ(sandbox->end_at(), clock_.now() + seconds(300));
}

TEST_F(SandboxLifecycle, ConnectBodyIsChecked) {
  add_sandbox("i1");
  expect_error(send("POST", "/sandboxes/i1/connect", "{}"), 400,
               "validation error: 'timeout' is required");
  EXPECT_EQ(send("POST", "/sandboxes/i1/connect", "").status, 400);
  expect_error(send("POST", "/sandboxes/i1/connect", R"({"timeout":86401})"), 400,
               "timeout must not be greater than 86400 seconds (24 hours)");
  EXPECT_EQ(send("POST", "/v2/sandboxes/i1/connect", R"({"timeout":86401})").status, 400);
  EXPECT_EQ(send("POST", "/v2/sandboxes/i1/connect", R"({"memory":"no"})").status, 400);
  EXPECT_EQ(send("POST", "/v2/sandboxes/nobody/connect", "{}").status, 404);
  EXPECT_EQ(send("POST", "/v2/sandboxes/NO/connect", "{}").status, 400);
}

TEST_F(SandboxLifecycle, RoutingHeadersOfOldClientsDoNotMatter) {
  add_sandbox("i1");
  const Reply reply = send_with("POST", "/sandboxes/i1/connect", R"({"timeout":60})",
                                {{"Host", "localhost"},
                                 {"X-API-Key", key_.secret},
                                 {"E2b-Sandbox-Id", "i1"},
                                 {"E2b-Sandbox-Port", "49983"}});
  EXPECT_EQ(reply.status, 200);
}

}  // namespace
}  // namespace alcove::api::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/error_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gateway/access.h"
#include "gateway/routing.h"
#include "gateway/target.h"

namespace alcove::gateway {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char kChrome[] = "Mozilla/5.0 (X11; Linux x86_64) Chrome/120.0 Safari/537.36";

http::RequestHead request_with(http::Headers headers) {
  http::RequestHead head;
  head.method = "GET";
  head.target = "/";
  head.headers = std::move(headers);
  return head;
}

const SandboxId kId("iabc");

TEST(ErrorPage, IsReadableForScriptsOfOtherOrigins) {
  http::RequestHead request = request_with({{"Origin", "https://a.example"}});
  const auto page = make_error_page(Trouble::kSandboxNotFound, request, kId, 49983);
  EXPECT_EQ(page.status, 502);
  EXPECT_EQ(page.headers.get("Access-Control-Allow-Origin"), "*");

  request.method = "OPTIONS";
  request.headers.add("Access-Control-Request-Method", "GET");
  request.headers.add("Access-Control-Request-Headers", "e2b-traffic-access-token");
  for (const Trouble trouble : {Trouble::kSandboxNotFound, Trouble::kTrafficTokenMissing}) {
    const auto preflight = make_error_page(trouble, request, kId, 8000);
    EXPECT_EQ(preflight.status, 204);
    EXPECT_EQ(preflight.headers.get("Access-Control-Allow-Headers"), "e2b-traffic-access-token");
  }
}

TEST(ErrorPage, JsonTextsAreThoseThatClientsCompare) {
  const http::RequestHead request = request_with({{"User-Agent", "connectrpc/0.12.1"}});
  const auto not_found = make_error_page(Trouble::kSandboxNotFound, request, kId, 49983);
  EXPECT_EQ(not_found.status, 502);
  EXPECT_EQ(not_found.headers.get("Content-Type"), "application/json; charset=utf-8");
  EXPECT_EQ(not_found.body,
            R"({"sandboxId":"iabc","message":"The sandbox was not found","code":502})");

  const auto closed = make_error_page(Trouble::kPortClosed, request, kId, 8000);
  EXPECT_EQ(closed.status, 502);
  EXPECT_EQ(closed.body, R"({"sandboxId":"iabc","message":"The sandbox is running but port is not )"
                         R"(open","port":8000,"code":502})");

  const auto missing = make_error_page(Trouble::kTrafficTokenMissing, request, kId, 8000);
  EXPECT_EQ(missing.status, 403);
  EXPECT_EQ(missing.body,
            R"({"sandboxId":"iabc","message":"Sandbox is secured with traffic access token. )"
            R"(Token header 'e2b-traffic-access-token' is missing","code":403})");

  const auto wrong = make_error_page(Trouble::kTrafficTokenWrong, request, kId, 8000);
  EXPECT_EQ(wrong.status, 403);
  EXPECT_EQ(wrong.body,
            R"({"sandboxId":"iabc","message":"Sandbox is secured with traffic access token. )"
            R"(Provided token in header 'e2b-traffic-access-token' is invalid","code":403})");

  // Other texts must not be taken for one of the two that choose the exception.
  for (const Trouble other :
       {Trouble::kNoAnswer, Trouble::kBadAnswer, Trouble::kTooSlow, Trouble::kNoTls}) {
    const auto page = make_error_page(other, request, kId, 8000);
    EXPECT_EQ(page.status, 502);
    EXPECT_THAT(page.body, testing::Not(HasSubstr("was not found")));
    EXPECT_THAT(page.body, testing::Not(HasSubstr("port is not open")));
  }
}

TEST(ErrorPage, WhatMayPassSaysWhenToComeBack) {
  const http::RequestHead request = request_with({});
  for (const Trouble trouble : {Trouble::kSandboxUnclear, Trouble::kNoConnection,
                                Trouble::kTooManyWaiting, Trouble::kTooManyWaitingInAll}) {
    const auto page = make_error_page(trouble, request, kId, 8000, /*limit=*/7);
    EXPECT_EQ(page.status, trouble == Trouble::kTooManyWaiting ? 429 : 503);
    EXPECT_EQ(page.headers.get("Retry-After"), "1");
    EXPECT_EQ(page.headers.get("Access-Control-Expose-Headers"), "Retry-After");
    EXPECT_EQ(page.body.find(R"("connectionLimit":7)") != std::string::npos,
              trouble == Trouble::kTooManyWaiting);
  }
  const auto text_of = [&](Trouble trouble) {
    return make_error_page(trouble, request, kId, 8000).body;
  };
  EXPECT_THAT(text_of(Trouble::kTooManyWaiting),
              HasSubstr("Too many requests wait for services of the sandbox to start"));
  EXPECT_THAT(text_of(Trouble::kTooManyWaitingInAll),
              HasSubstr("Too many requests wait for services of sandboxes to start"));
  EXPECT_EQ(make_error_page(Trouble::kNoConnection, request, kId, kAgentPort).status, 500);
  EXPECT_EQ(make_error_page(Trouble::kSandboxUnclear, request, kId, kAgentPort).status, 500);
  EXPECT_FALSE(
      make_error_page(Trouble::kPortClosed, request, kId, 8000).headers.has("Retry-After"));
  EXPECT_EQ(make_error(429, "x").headers.get("Retry-After"), "1");
  EXPECT_FALSE(make_error(401, "x").headers.has("Retry-After"));
}

TEST(ErrorPage, HtmlForABrowsersWindow) {
  const http::RequestHead request =
      request_with({{"User-Agent", kChrome}, {"Sec-Fetch-Mode", "navigate"}});
  const auto closed = make_error_page(Trouble::kPortClosed, request, kId, 8000);
  EXPECT_EQ(closed.headers.get("Content-Type"), "text/html; charset=utf-8");
  EXPECT_THAT(closed.body, StartsWith("<html"));
  EXPECT_THAT(closed.body, EndsWith("</html>"));
  EXPECT_THAT(closed.body, HasSubstr("no service running on port"));
  EXPECT_THAT(closed.body, HasSubstr("8000"));
  EXPECT_THAT(closed.body, HasSubstr("iabc"));
  const auto body_of = [&](Trouble trouble) {
    return make_error_page(trouble, request, kId, 8000).body;
  };
  EXPECT_THAT(body_of(Trouble::kSandboxNotFound), HasSubstr("Sandbox Not Found"));
  EXPECT_THAT(body_of(Trouble::kTrafficTokenMissing), HasSubstr("Missing Traffic Access Token"));
  EXPECT_THAT(body_of(Trouble::kTrafficTokenWrong), HasSubstr("Invalid Traffic Access Token"));
}

TEST(ErrorPage, ScriptsAndProgramsGetJson) {
  EXPECT_TRUE(wants_html(request_with({{"User-Agent", kChrome}})));
  EXPECT_TRUE(wants_html(request_with({{"user-agent", "FIREFOX"}, {"Accept", "*/*"}})));
  EXPECT_TRUE(wants_html(
      request_with({{"User-Agent", kChrome}, {"Accept", "text/html, application/json"}})));
  EXPECT_TRUE(wants_html(request_with({{"User-Agent", kChrome},
                                       {"Sec-Fetch-Mode", "navigate"},
                                       {"X-Requested-With", "XMLHttpRequest"}})));
  EXPECT_FALSE(wants_html(request_with({})));
  EXPECT_FALSE(wants_html(request_with({{"User-Agent", "curl/8.0"}, {"Accept", "text/html"}})));
  EXPECT_FALSE(wants_html(request_with({{"User-Agent", kChrome}, {"Accept", "application/json"}})));
  for (const char* mode : {"cors", "no-cors", "same-origin", "websocket", "CORS"}) {
    EXPECT_FALSE(wants_html(request_with({{"User-Agent", kChrome}, {"Sec-Fetch-Mode", mode}})));
  }
  EXPECT_FALSE(
      wants_html(request_with({{"User-Agent", kChrome}, {"X-Requested-With", "XMLHttpRequest"}})));
}

TEST(ErrorPage, ControlPathRefusalShowsNoSandboxAndEscapesThePath) {
  const auto page = make_control_path_refusal("//in\"it");
  EXPECT_EQ(page.status, 404);
  EXPECT_EQ(page.body, R"({"message":"Path not found","path":"//in\"it","code":404})");
  EXPECT_THAT(make_control_path_refusal("/\xff").body, HasSubstr(R"("path":"")"));
}

store::Sandbox guarded() {
  store::Sandbox record;
  record.id = kId;
  record.traffic_token = "0123456789abcdef";
  return record;
}

TEST(Access, TrafficTokenGuardsEveryPortButTheAgents) {
  const auto status = [&](http::Headers headers, uint16_t port) {
    const auto refusal = refuse_access(request_with(std::move(headers)), "/", guarded(), port);
    return refusal ? refusal->status : 0;
  };
  EXPECT_EQ(status({}, 8000), 403);
  EXPECT_EQ(status({{"E2B-Traffic-Access-Token", ""}}, 8000), 403);
  EXPECT_EQ(status({{"E2B-Traffic-Access-Token", "0123456789abcdeX"}}, 8000), 403);
  EXPECT_EQ(status({{"E2B-Traffic-Access-Token", "0123456789abcde"}}, 8000), 403);
  EXPECT_EQ(status({{"E2B-Traffic-Access-Token", "0123456789abcdef"}}, 8000), 0);
  EXPECT_EQ(status({}, kAgentPort), 0);
  EXPECT_EQ(status({}, 49999), 403);

  store::Sandbox open = guarded();
  open.traffic_token.clear();
  EXPECT_FALSE(refuse_access(request_with({}), "/", open, 8000));
}

TEST(Access, ControlCallsAreRefusedOnTheAgentsPortOnly) {
  http::RequestHead request = request_with({{"E2B-Traffic-Access-Token", "0123456789abcdef"}});
  for (const char* method : {"POST", "GET", "OPTIONS", "X"}) {
    request.method = method;
    request.target = "/init?x=1";
    EXPECT_EQ(
        refuse_access(request, split_target(request.target).path(), guarded(), kAgentPort)->status,
        404);
    request.target = "http://host/init";
    EXPECT_EQ(
        refuse_access(request, split_target(request.target).path(), guarded(), kAgentPort)->status,
        404);
    request.target = "/init";
    EXPECT_FALSE(refuse_access(request, split_target(request.target).path(), guarded(), 8000));
  }
}

}  // namespace
}  // namespace alcove::gateway

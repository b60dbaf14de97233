// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/forwarding.h"

#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"
#include "gateway/routing.h"

namespace alcove::gateway {
namespace {

http::RequestHead request_with(std::string target, http::Headers headers) {
  http::RequestHead head;
  head.method = "GET";
  head.target = std::move(target);
  head.headers = std::move(headers);
  return head;
}

// Of a request that is passed on.
http::RequestHead upstream_head(const http::RequestHead& request, Upgrade upgrade) {
  auto head = make_upstream_head(request, upgrade);
  EXPECT_TRUE(head);
  return head ? *std::move(head) : http::RequestHead{};
}

// "X1, X2, ..."
std::string names(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) text += cat(i > 1 ? ", X" : "X", i);
  return text;
}

std::string shown(const http::Headers& headers) {
  std::string text;
  for (const auto& [name, value] : headers) text += name + "=" + value + "\n";
  return text;
}

TEST(Forwarding, FieldsOfTheClientsConnectionStayBehind) {
  const auto head = upstream_head(request_with("/x?y=1", {{"Host", "a.b"},
                                                          {"Connection", "close, X-Hop"},
                                                          {"Keep-Alive", "timeout=5"},
                                                          {"TE", "trailers"},
                                                          {"Trailer", "X-T"},
                                                          {"Transfer-Encoding", "chunked"},
                                                          {"Content-Length", "5"},
                                                          {"Upgrade", "websocket"},
                                                          {"Proxy-Authorization", "secret"},
                                                          {"Proxy-Connection", "close"},
                                                          {"Expect", "100-continue"},
                                                          {"X-Hop", "1"},
                                                          {"X-Kept", "2"},
                                                          {"x-kept", "3"},
                                                          {"E2b-Sandbox-Id", "iabc"}}),
                                  Upgrade::kNone);
  EXPECT_EQ(head.target, "/x?y=1");
  EXPECT_EQ(shown(head.headers), "Host=a.b\nX-Kept=2\nx-kept=3\nE2b-Sandbox-Id=iabc\n");
}

TEST(Forwarding, ConnectionCannotTakeAwayHostOrTokens) {
  const auto head = upstream_head(
      request_with("/", {{"Host", "a.b"},
                         {"X-Access-Token", "t"},
                         {"E2B-Traffic-Access-Token", "u"},
                         {"Connection", "host, x-access-token, e2b-traffic-access-token"}}),
      Upgrade::kNone);
  EXPECT_EQ(shown(head.headers), "Host=a.b\nX-Access-Token=t\nE2B-Traffic-Access-Token=u\n");
}

TEST(Forwarding, AbsoluteTargetsBecomeOriginForm) {
  const auto head =
      upstream_head(request_with("http://real.host?q", {{"Host", "other"}}), Upgrade::kNone);
  EXPECT_EQ(head.target, "/?q");
  EXPECT_EQ(shown(head.headers), "Host=real.host\n");
  EXPECT_EQ(upstream_head(request_with("*", {{"Host", "a"}}), Upgrade::kNone).target, "*");
}

TEST(Forwarding, ARequestWithoutHostGetsOne) {
  EXPECT_EQ(shown(upstream_head(request_with("/", {}), Upgrade::kNone).headers),
            "Host=localhost\n");
}

TEST(Forwarding, UpgradesArePassedOnWhereTheyAreHarmless) {
  auto request = request_with(
      "/ws", {{"Host", "a"}, {"Connection", "keep-alive, Upgrade"}, {"Upgrade", "websocket"}});
  EXPECT_EQ(requested_upgrade(request, 8000), Upgrade::kRequested);
  EXPECT_EQ(shown(upstream_head(request, Upgrade::kRequested).headers),
            "Host=a\nConnection=Upgrade\nUpgrade=websocket\n");
  EXPECT_EQ(requested_upgrade(request, kAgentPort), Upgrade::kNone);

  auto with_body = request;
  with_body.headers.add("Content-Length", "3");
  EXPECT_EQ(requested_upgrade(with_body, 8000), Upgrade::kNone);
  request.version_minor = 0;
  EXPECT_EQ(requested_upgrade(request, 8000), Upgrade::kNone);
  EXPECT_EQ(requested_upgrade(request_with("/", {{"Upgrade", "websocket"}}), 8000), Upgrade::kNone);
}

TEST(Forwarding, AnswersLoseTheFieldsOfTheServicesConnection) {
  http::ResponseHead head{.status = 200,
                          .headers = {{"Content-Type", "text/plain"},
                                      {"Connection", "X-Hop"},
                                      {"X-Hop", "1"},
                                      {"Keep-Alive", "timeout=5"},
                                      {"Transfer-Encoding", "chunked"},
                                      {"Content-Length", "3"},
                                      {"Upgrade", "h2c"},
                                      {"Proxy-Authenticate", "x"},
                                      {"Set-Cookie", "a=1"},
                                      {"Set-Cookie", "b=2"}}};
  EXPECT_TRUE(clean_response_headers(head));
  EXPECT_EQ(shown(head.headers), "Content-Type=text/plain\nSet-Cookie=a=1\nSet-Cookie=b=2\n");

  http::ResponseHead switching{
      .status = 101, .headers = {{"Upgrade", "websocket"}, {"connection", "upgrade"}, {"X", "1"}}};
  EXPECT_TRUE(clean_response_headers(switching));
  EXPECT_EQ(shown(switching.headers), "Upgrade=websocket\nX=1\nConnection=Upgrade\n");
}

TEST(Forwarding, UpgradeRequiredSaysWhatItRequires) {
  http::ResponseHead head{
      .status = 426,
      .headers = {{"Upgrade", "HTTP/3.0"}, {"Connection", "Upgrade, X-Hop"}, {"X-Hop", "1"}}};
  EXPECT_TRUE(clean_response_headers(head));
  EXPECT_EQ(shown(head.headers), "Upgrade=HTTP/3.0\nConnection=Upgrade\n");
  http::ResponseHead without{.status = 426, .headers = {{"Connection", "close"}, {"X", "1"}}};
  EXPECT_TRUE(clean_response_headers(without));
  EXPECT_EQ(shown(without.headers), "X=1\n");
}

TEST(Forwarding, ConnectionNamesAFewFieldsAndNotThousands) {
  // The usual words count for nothing.
  std::string usual = "close";
  for (int i = 0; i < 1000; ++i) usual += ", , keep-alive, Upgrade";
  const http::Headers few = {{"Host", "a"}, {"Connection", usual}, {"Connection", names(32)},
                             {"X1", "1"},   {"x32", "2"},          {"X33", "3"}};
  EXPECT_EQ(shown(upstream_head(request_with("/", few), Upgrade::kNone).headers),
            "Host=a\nX33=3\n");
  http::ResponseHead answer{.status = 200, .headers = few};
  EXPECT_TRUE(clean_response_headers(answer));
  EXPECT_EQ(shown(answer.headers), "Host=a\nX33=3\n");

  http::Headers many = few;
  many.add("Connection", "one-more");
  for (const int status : {101, 200}) {
    http::ResponseHead refused{.status = status, .headers = many};
    EXPECT_FALSE(clean_response_headers(refused));
  }
  const auto refused = make_upstream_head(request_with("/", many), Upgrade::kNone);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
}

TEST(Forwarding, BodiesAndRepetition) {
  EXPECT_FALSE(announces_body(request_with("/", {})));
  EXPECT_FALSE(announces_body(request_with("/", {{"Content-Length", "0"}})));
  EXPECT_TRUE(announces_body(request_with("/", {{"Content-Length", "1"}})));
  EXPECT_TRUE(announces_body(request_with("/", {{"Transfer-Encoding", "chunked"}})));
  auto request = request_with("/", {});
  EXPECT_TRUE(is_idempotent(request));
  request.method = "POST";
  EXPECT_FALSE(is_idempotent(request));
}

}  // namespace
}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_create.h"

#include "api/testing/api_fixture.h"

namespace alcove::api::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;
using Access = node::CreateRequest::Access;

class CreateSandbox : public ApiTest {
 protected:
  const node::CreateRequest& asked() {
    asked_ = node_.last_request();
    EXPECT_TRUE(asked_) << "nothing reached the node";
    if (!asked_) asked_.emplace();
    return *asked_;
  }

 private:
  std::optional<node::CreateRequest> asked_;
};

TEST_F(CreateSandbox, OldRouteAnswersWhatOldClientsSend) {
  const Reply reply = send("POST", "/sandboxes",
                           R"({"templateID":"base","timeout":300,"secure":true,"autoPause":false,
                               "allow_internet_access":true,"metadata":{"a":"b"},"envVars":{}})");
  ASSERT_EQ(reply.status, 201) << reply.text;
  const json::object body = reply.object();
  EXPECT_EQ(body.at("templateID"), "tpl00000000000000000");
  EXPECT_EQ(body.at("clientID"), "6532622b");
  EXPECT_EQ(body.at("envdVersion"), "0.6.13");
  EXPECT_EQ(body.at("alias"), "base");
  const std::string id = reply.field("sandboxID");
  EXPECT_EQ(id.size(), 21u);
  EXPECT_EQ(reply.field("envdAccessToken"), "envd-" + id);
  EXPECT_FALSE(body.contains("trafficAccessToken"));
  EXPECT_FALSE(body.contains("domain"));
  EXPECT_EQ(asked().team, key_.team.id);
  EXPECT_EQ(asked().timeout, std::chrono::seconds(300));
  EXPECT_EQ(asked().metadata, (std::map<std::string, std::string>{{"a", "b"}}));
  EXPECT_EQ(asked().allow_internet_access, true);
}

TEST_F(CreateSandbox, NewRouteIsSecureAndLives300Seconds) {
  const Reply reply = send("POST", "/v2/sandboxes", R"({"templateID":"base"})");
  ASSERT_EQ(reply.status, 201) << reply.text;
  EXPECT_TRUE(reply.object().contains("envdAccessToken"));
  EXPECT_EQ(asked().timeout, std::chrono::seconds(300));
  EXPECT_EQ(asked().agent_access, Access::kToken);
  EXPECT_EQ(asked().traffic_access, Access::kOpen);
  EXPECT_EQ(asked().allow_internet_access, std::nullopt);
}

TEST_F(CreateSandbox, NewRouteIsSecureWhateverSecureSays) {
  const Reply reply = send("POST", "/v2/sandboxes", R"({"templateID":"base","secure":false})");
  ASSERT_EQ(reply.status, 201);
  EXPECT_EQ(asked().agent_access, Access::kToken);
}

TEST_F(CreateSandbox, OldRouteIsOpenAndLives15SecondsByDefault) {
  const Reply reply = send("POST", "/sandboxes", R"({"templateID":"base"})");
  ASSERT_EQ(reply.status, 201);
  EXPECT_FALSE(reply.object().contains("envdAccessToken"));
  EXPECT_EQ(asked().timeout, std::chrono::seconds(15));
  EXPECT_EQ(asked().agent_access, Access::kOpen);
}

TEST_F(CreateSandbox, EnvironmentAndMcpReachTheNode) {
  const Reply reply = send(
      "POST", "/v2/sandboxes",
      R"({"templateID":"base","envVars":{"A":"1","B":""},"mcp":{"exa":{"apiKey":"x"},"git":{}}})");
  ASSERT_EQ(reply.status, 201) << reply.text;
  EXPECT_EQ(asked().env_vars, (std::map<std::string, std::string>{{"A", "1"}, {"B", ""}}));
  EXPECT_EQ(asked().mcp_json, R"(["exa","git"])");
}

TEST_F(CreateSandbox, PrivateTrafficGetsATokenAndIsShownAgain) {
  const Reply reply = send("POST", "/v2/sandboxes",
                           R"({"templateID":"base","network":{"allowPublicTraffic":false}})");
  ASSERT_EQ(reply.status, 201) << reply.text;
  EXPECT_EQ(asked().traffic_access, Access::kToken);
  const std::string id = reply.field("sandboxID");
  EXPECT_EQ(reply.field("trafficAccessToken"), "traffic-" + id);
  const json::object detail = send("GET", "/sandboxes/" + id).object();
  EXPECT_EQ(detail.at("network"), json::value({{"allowPublicTraffic", false}}));
}

TEST_F(CreateSandbox, TemplateIsFoundByIdNameAndDefaultTag) {
  for (const char* name :
       {"base", "  BASE ", "base:default", "tpl00000000000000000", "tpl00000000000000000:default",
        "base:11111111-2222-4333-8444-555555555555"}) {
    const Reply reply =
        send("POST", "/v2/sandboxes", json::serialize(json::object{{"templateID", name}}));
    EXPECT_EQ(reply.status, 201) << name << reply.text;
    EXPECT_EQ(asked().template_record.id, TemplateId("tpl00000000000000000"));
  }
}

TEST_F(CreateSandbox, UnknownTemplateIs404) {
  expect_error(send("POST", "/v2/sandboxes", R"({"templateID":"Nope"})"), 404,
               "template 'Nope' not found");
  expect_error(send("POST", "/v2/sandboxes", R"({"templateID":"team/base"})"), 404,
               "template 'team/base' not found");
  expect_error(send("POST", "/v2/sandboxes", R"({"templateID":"base:v2"})"), 404,
               "tag 'v2' does not exist for template 'base'");
}

TEST_F(CreateSandbox, AnotherTeamsTemplateIsNotFound) {
  CatalogEntry entry = template_entry("tpl00000000000000001", "own");
  entry.record.team = other_key_.team.id;
  templates_.put(entry);
  EXPECT_EQ(send("POST", "/v2/sandboxes", R"({"templateID":"own"})").status, 404);
  EXPECT_EQ(send("POST", "/v2/sandboxes", R"({"templateID":"tpl00000000000000001"})").status, 404);
  EXPECT_EQ(send_as_other("POST", "/v2/sandboxes", R"({"templateID":"own"})").status, 201);
  EXPECT_EQ(send_as_other("POST", "/v2/sandboxes", R"({"templateID":"others/own"})").status, 201);
}

TEST_F(CreateSandbox, TemplateThatIsStillBeingMadeIs503) {
  readiness_.set_progress("building template code-interpreter-v1");
  const Reply reply = send("POST", "/v2/sandboxes", R"({"templateID":"code-interpreter-v1"})");
  expect_error(reply, 503, "The server is not ready yet: building template code-interpreter-v1");
  EXPECT_EQ(reply.header("Retry-After"), "1");
  EXPECT_EQ(send("POST", "/v2/sandboxes", R"({"templateID":"base"})").status, 201);
}

TEST_F(CreateSandbox, CleanRefusalForCapacityMayBeRepeated) {
  node_.create_error = Error(Code::kUnavailable, "the disk pool is nearly full");
  const Reply reply = send("POST", "/v2/sandboxes", R"({"templateID":"base"})");
  expect_error(reply, 503, "Failed to place sandbox: the disk pool is nearly full");
  EXPECT_EQ(reply.object().at("error_code"), "sandbox_capacity_unavailable");
  EXPECT_EQ(reply.header("Retry-After"), "1");
}

TEST_F(CreateSandbox, NoOtherFailureIsAnsweredWithAStatusThatClientsRepeat) {
  for (int code = 0; code <= static_cast<int>(Code::kUnauthenticated); ++code) {
    if (static_cast<Code>(code) == Code::kUnavailable) continue;
    node_.create_error = Error(static_cast<Code>(code), "secret path /var/lib/alcove/x");
    const Reply reply = send("POST", "/v2/sandboxes", R"({"templateID":"base"})");
    EXPECT_EQ(reply.status, 500) << code;
    EXPECT_EQ(reply.object().at("error_code"), "sandbox_create_failed");
    EXPECT_THAT(reply.message(),
                AllOf(StartsWith("Failed to place sandbox"), Not(HasSubstr("/var/lib"))));
    EXPECT_EQ(reply.header("Retry-After"), "");
    EXPECT_EQ(reply.header("Should-Retry"), "false");
  }
}

TEST_F(CreateSandbox, RefusalReachesTheClientAsJson) {
  expect_error(send("POST", "/sandboxes", R"({"templateID":"base","autoPause":true})"), 400,
               "autoPause is not available on this server yet.");
  EXPECT_FALSE(node_.last_request());
}

TEST_F(CreateSandbox, DomainIsSaidWhenItIsSet) {
  Api api(Dependencies{.node = node_,
                       .clock = clock_,
                       .keys = keys_,
                       .templates = templates_,
                       .readiness = readiness_,
                       .store = store_,
                       .store_pool = pool_,
                       .settings = {.domain = "box.localhost:3000"}});
  http::Server server(loop_, [&](http::Exchange& exchange) { return api.handle(exchange); });
  auto [here, there] = net::testing::make_stream_pair(loop_);
  server.serve_connection(std::move(there));
  client_.emplace(std::move(here));
  const auto request = [](http::ClientConnection& client, std::string key) {
    http::RequestHead head;
    head.method = "POST";
    head.target = "/v2/sandboxes";
    head.headers = {{"Host", "localhost"}, {"X-API-Key", key}};
    return http::fetch(client, std::move(head), R"({"templateID":"base"})", 1 << 20);
  };
  const auto response = net::testing::run(loop_, request(*client_, key_.secret));
  ASSERT_TRUE(response);
  EXPECT_EQ(json::parse(response->body).at("domain"), "box.localhost:3000");
  client_.reset();
  server.stop();
  loop_.restart();
  loop_.run_for(std::chrono::milliseconds(10));
}

}  // namespace
}  // namespace alcove::api::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/create_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/strings.h"

namespace alcove::api {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ApiResult<CreateBody> parse(std::string_view body, Generation generation = Generation::kV1) {
  return parse_create_body(body, generation, std::chrono::hours(24));
}

// A body with templateID and these further fields.
ApiResult<CreateBody> parse_with(std::string_view fields, Generation generation = Generation::kV1) {
  return parse(cat(R"({"templateID":"base",)", fields, "}"), generation);
}

void expect_refused(const ApiResult<CreateBody>& result, int status, std::string_view message) {
  ASSERT_FALSE(result) << "accepted; expected " << message;
  EXPECT_EQ(result.error().status, status);
  EXPECT_EQ(result.error().message, message);
}

TEST(CreateBody, MalformedJsonIs400) {
  for (const char* body : {"", "{", "nonsense", R"({"templateID":"base"} x)", "{\"a\":\"\xff\"}"}) {
    const auto result = parse(body);
    ASSERT_FALSE(result) << body;
    EXPECT_EQ(result.error().status, 400);
    EXPECT_THAT(result.error().message, StartsWith("validation error: the body is not valid JSON"));
  }
  expect_refused(parse("[]"), 400, "validation error: the body must be a JSON object");
  expect_refused(parse("null"), 400, "validation error: the body must be a JSON object");
  const std::string deep = std::string(5000, '[') + std::string(5000, ']');
  EXPECT_FALSE(parse(deep));
}

TEST(CreateBody, TemplateIsRequired) {
  expect_refused(parse("{}"), 400, "validation error: 'templateID' is required");
  expect_refused(parse(R"({"templateID":null})"), 400,
                 "validation error: 'templateID' is required");
  expect_refused(parse(R"({"templateID":5})"), 400,
                 "validation error: 'templateID' must be a string");
}

TEST(CreateBody, MalformedTemplateReferenceIs400) {
  for (const char* text :
       {"", " ", "a b", "/base", "base:", ":v1", "a/b/c", "base:v1:v2", "bäse", "../etc", "a.b"}) {
    const auto result = parse(cat(R"({"templateID":")", text, "\"}"));
    ASSERT_FALSE(result) << text;
    EXPECT_EQ(result.error().status, 400) << text;
    EXPECT_THAT(result.error().message, HasSubstr("invalid template reference"));
  }
}

TEST(CreateBody, ReferenceIsTakenApart) {
  const auto result = parse(R"({"templateID":" Team-1/My_Box:v1.2 "})");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->template_reference.name_space, "team-1");
  EXPECT_EQ(result->template_reference.name, "my_box");
  EXPECT_EQ(result->template_reference.tag, "v1.2");
  EXPECT_EQ(result->template_text, "Team-1/My_Box:v1.2");
}

TEST(CreateBody, TimeoutHasADefaultPerGeneration) {
  EXPECT_EQ(parse_with(R"("metadata":{})", Generation::kV1)->timeout, seconds(15));
  EXPECT_EQ(parse_with(R"("metadata":{})", Generation::kV2)->timeout, seconds(300));
}

TEST(CreateBody, TimeoutIsLimited) {
  EXPECT_EQ(parse_with(R"("timeout":1)")->timeout, seconds(1));
  EXPECT_EQ(parse_with(R"("timeout":86400)")->timeout, seconds(86400));
  EXPECT_EQ(parse_with(R"("timeout":60.0)")->timeout, seconds(60));
  for (const Generation generation : {Generation::kV1, Generation::kV2}) {
    expect_refused(parse_with(R"("timeout":0)", generation), 400,
                   "timeout must be greater than 0 seconds");
    expect_refused(parse_with(R"("timeout":86401)", generation), 400,
                   "timeout must not be greater than 86400 seconds (24 hours)");
    expect_refused(parse_with(R"("timeout":-1)", generation), 400,
                   "validation error: 'timeout' must be at least 0");
    expect_refused(parse_with(R"("timeout":1.5)", generation), 400,
                   "validation error: 'timeout' must be an integer");
    expect_refused(parse_with(R"("timeout":"60")", generation), 400,
                   "validation error: 'timeout' must be an integer");
    expect_refused(parse_with(R"("timeout":99999999999)", generation), 400,
                   "validation error: 'timeout' must be at most 2147483647");
    expect_refused(parse_with(R"("timeout":18446744073709551615)", generation), 400,
                   "validation error: 'timeout' must be at most 2147483647");
    expect_refused(parse_with(R"("timeout":1e300)", generation), 400,
                   "validation error: 'timeout' must be an integer");
  }
}

TEST(CreateBody, MapsHoldStrings) {
  const auto result = parse_with(R"("metadata":{"a":"1","":"x"},"envVars":{"PATH":"/bin"})");
  ASSERT_TRUE(result);
  EXPECT_EQ(result->metadata.size(), 2u);
  EXPECT_EQ(result->env_vars.at("PATH"), "/bin");
  expect_refused(parse_with(R"("metadata":{"a":1})"), 400,
                 "validation error: 'metadata' must be an object whose values are strings");
  expect_refused(parse_with(R"("metadata":[])"), 400,
                 "validation error: 'metadata' must be an object");
  expect_refused(parse_with(R"("envVars":{"A":null})"), 400,
                 "validation error: 'envVars' must be an object whose values are strings");
}

TEST(CreateBody, ImpossibleEnvironmentIs400) {
  expect_refused(parse_with(R"("envVars":{"":"x"})"), 400, "envVars: a name must not be empty");
  expect_refused(parse_with(R"("envVars":{"A=B":"x"})"), 400,
                 "envVars: the name 'A=B' must contain neither '=' nor a NUL byte");
  expect_refused(parse_with(R"("envVars":{"A\u0000B":"x"})"), 400,
                 "envVars: the name 'A' must contain neither '=' nor a NUL byte");
  expect_refused(parse_with(R"("envVars":{"A":"x\u0000"})"), 400,
                 "envVars: the value of 'A' must not contain a NUL byte");
}

TEST(CreateBody, MapsAreLimited) {
  const auto accepted = [](std::string_view field, size_t size) {
    return parse_with(cat("\"", field, R"(":{"a":")", std::string(size, 'x'), "\"}")).has_value();
  };
  EXPECT_TRUE(accepted("metadata", 64 * 1024 - 1));
  EXPECT_FALSE(accepted("metadata", 64 * 1024));
  // One variable may be as long as the kernel takes it.
  EXPECT_TRUE(accepted("envVars", 128 * 1024 - 3));
  EXPECT_FALSE(accepted("envVars", 128 * 1024 - 2));
  expect_refused(parse_with(cat(R"("envVars":{"a":")", std::string(2 << 20, 'x'), "\"}")), 400,
                 "envVars: names and values must not be longer than 1048576 bytes in all");
}

TEST(CreateBody, SecureIsTheCallersChoiceOnTheOldRouteOnly) {
  EXPECT_FALSE(parse_with(R"("timeout":5)")->secure);
  EXPECT_TRUE(parse_with(R"("secure":true)")->secure);
  EXPECT_FALSE(parse_with(R"("secure":false)")->secure);
  EXPECT_TRUE(parse_with(R"("secure":false)", Generation::kV2)->secure);
  expect_refused(parse_with(R"("secure":"yes")"), 400,
                 "validation error: 'secure' must be true or false");
}

TEST(CreateBody, InternetAccessIsRecorded) {
  EXPECT_EQ(parse_with(R"("timeout":5)")->allow_internet_access, std::nullopt);
  EXPECT_EQ(parse_with(R"("allow_internet_access":false)")->allow_internet_access, false);
  expect_refused(parse_with(R"("allow_internet_access":0)"), 400,
                 "validation error: 'allow_internet_access' must be true or false");
}

TEST(CreateBody, PrivateTrafficNeedsSecure) {
  expect_refused(parse_with(R"("network":{"allowPublicTraffic":false})"), 400,
                 "network.allowPublicTraffic: false needs secure: true");
  const auto result = parse_with(R"("secure":true,"network":{"allowPublicTraffic":false})");
  ASSERT_TRUE(result);
  EXPECT_FALSE(result->public_traffic);
  EXPECT_TRUE(parse_with(R"("network":{"allowPublicTraffic":false})", Generation::kV2));
  EXPECT_TRUE(parse_with(R"("network":{"allowPublicTraffic":true})")->public_traffic);
}

TEST(CreateBody, NetworkFieldsThatAreNotBuiltAreRefusedByName) {
  const std::pair<const char*, const char*> cases[] = {
      {R"("allowOut":["1.1.1.1"])", "network.allowOut"},
      {R"("denyOut":["0.0.0.0/0"])", "network.denyOut"},
      {R"("dnsServers":["9.9.9.9"])", "network.dnsServers"},
      {R"("rules":{"a.example":[]})", "network.rules"},
  };
  for (const auto& [field, name] : cases) {
    for (const Generation generation : {Generation::kV1, Generation::kV2}) {
      expect_refused(parse_with(cat(R"("network":{)", field, "}"), generation), 400,
                     cat(name, " is not available on this server yet."));
    }
  }
}

TEST(CreateBody, HostMaskIsAHostWithOrWithoutAPort) {
  for (const char* mask : {"localhost", "localhost:${PORT}", "${PORT}.example.org:8080", "[::1]:1",
                           "[::1]", "10.0.0.1:65535", "under_score"}) {
    const auto result = parse_with(cat(R"("network":{"maskRequestHost":")", mask, R"("})"));
    ASSERT_TRUE(result) << mask;
    EXPECT_EQ(result->network_json, cat(R"({"maskRequestHost":")", mask, R"("})"));
  }
  for (const char* mask :
       {"", ":80", "a b", "a:", "a:b", "a:0", "a:65536", "a:1:2", "a/b", "a@b", "a\\r\\nX: y", "[",
        "[]", "[::1", "[::1]x", "[x]", "${HOST}", "ä", "a\\u0000"}) {
    expect_refused(
        parse_with(cat(R"("network":{"maskRequestHost":")", mask, R"("})")), 400,
        "network.maskRequestHost must be a host name or address, with or without a port");
  }
  expect_refused(
      parse_with(cat(R"("network":{"maskRequestHost":")", std::string(256, 'a'), R"("})")), 400,
      "network.maskRequestHost must be a host name or address, with or without a port");
}

TEST(CreateBody, HttpsPortsArePortsOfServices) {
  for (const char* ports : {"[443]", "[1,65535,8443]", "[]"}) {
    const auto result = parse_with(cat(R"("network":{"httpsPorts":)", ports, "}"));
    ASSERT_TRUE(result) << ports;
    EXPECT_EQ(result->network_json, cat(R"({"httpsPorts":)", ports, "}"));
  }
  std::string many = "[1";
  for (int port = 2; port <= 101; ++port) many += cat(",", port);
  for (const std::string& ports :
       {std::string("[0]"), std::string("[65536]"), std::string("[-1]"), std::string("[49983]"),
        std::string("[443,\"x\"]"), std::string("[1.5]"), many + "]"}) {
    expect_refused(parse_with(cat(R"("network":{"httpsPorts":)", ports, "}")), 400,
                   "network.httpsPorts must be a list of at most 100 ports from 1 to 65535; 49983 "
                   "is not allowed");
  }
}

TEST(CreateBody, EgressProxyIs403) {
  expect_refused(parse_with(R"("network":{"egressProxy":{"address":"proxy.example:1080"}})"), 403,
                 "network.egressProxy is not enabled on this server.");
}

TEST(CreateBody, NetworkFieldsThatAskForNothingAreAccepted) {
  const auto result =
      parse_with(R"("network":{"allowOut":[],"denyOut":null,"rules":{},"egressProxy":null,
                     "httpsPorts":[],"dnsServers":[],"unknown":1,"maskRequestHost":null})");
  ASSERT_TRUE(result) << result.error().message;
  EXPECT_EQ(result->network_json, R"({"allowOut":[],"dnsServers":[],"httpsPorts":[],"rules":{}})");
  EXPECT_EQ(parse_with(R"("network":{})")->network_json, "{}");
  EXPECT_EQ(parse_with(R"("network":null)")->network_json, "");
}

TEST(CreateBody, NetworkTypesAreChecked) {
  expect_refused(parse_with(R"("network":[])"), 400,
                 "validation error: 'network' must be an object");
  expect_refused(parse_with(R"("network":{"allowOut":"x"})"), 400,
                 "validation error: 'network.allowOut' must be a list");
  expect_refused(parse_with(R"("network":{"denyOut":[1]})"), 400,
                 "validation error: 'network.denyOut' must be a list of strings");
  expect_refused(parse_with(R"("network":{"egressProxy":"x"})"), 400,
                 "validation error: 'network.egressProxy' must be an object");
  expect_refused(parse_with(R"("network":{"allowPublicTraffic":"no"})"), 400,
                 "validation error: 'network.allowPublicTraffic' must be true or false");
}

TEST(CreateBody, PausingIsRefused) {
  expect_refused(parse_with(R"("autoPause":true)"), 400,
                 "autoPause is not available on this server yet.");
  expect_refused(parse_with(R"("autoPause":true,"autoPauseMemory":false)"), 400,
                 "autoPause is not available on this server yet.");
  expect_refused(parse_with(R"("autoResume":{"enabled":true})"), 400,
                 "autoResume is not available on this server yet.");
  EXPECT_TRUE(parse_with(R"("autoPause":false,"autoPauseMemory":true)"));
  EXPECT_TRUE(parse_with(R"("autoResume":{"enabled":false})"));
}

TEST(CreateBody, SenselessPausingIs400) {
  expect_refused(parse_with(R"("autoPauseMemory":false)"), 400,
                 "autoPauseMemory: false needs autoPause: true");
  expect_refused(
      parse_with(R"("autoPause":true,"autoPauseMemory":false,"autoResume":{"enabled":true})"), 400,
      "autoPauseMemory: false cannot be combined with autoResume");
  expect_refused(parse_with(R"("autoResume":{})"), 400,
                 "validation error: 'autoResume.enabled' is required");
  expect_refused(parse_with(R"("autoResume":true)"), 400,
                 "validation error: 'autoResume' must be an object");
  expect_refused(parse_with(R"("autoPause":1)"), 400,
                 "validation error: 'autoPause' must be true or false");
}

TEST(CreateBody, IdentityIsRefusedUnlessEmpty) {
  expect_refused(parse_with(R"("iam":{"tokens":{"t":{"audience":"a","tokenType":"JWT-SVID"}}})"),
                 400, "iam is not available on this server yet.");
  EXPECT_TRUE(parse_with(R"("iam":{})"));
  EXPECT_TRUE(parse_with(R"("iam":{"tokens":{}})"));
}

TEST(CreateBody, VolumesAreOff) {
  expect_refused(parse_with(R"("volumeMounts":[{"name":"v","path":"/v"}])"), 400,
                 "Volume mounts are not enabled.");
  EXPECT_TRUE(parse_with(R"("volumeMounts":[])"));
  expect_refused(parse_with(R"("volumeMounts":{})"), 400,
                 "validation error: 'volumeMounts' must be a list");
}

TEST(CreateBody, McpServersAreRecordedByName) {
  EXPECT_EQ(parse_with(R"("mcp":{"exa":{"apiKey":"secret"}})")->mcp_json, R"(["exa"])");
  EXPECT_EQ(parse_with(R"("mcp":null)")->mcp_json, "");
  expect_refused(parse_with(R"("mcp":[])"), 400, "validation error: 'mcp' must be an object");
}

TEST(CreateBody, UnknownFieldsAreIgnored) { EXPECT_TRUE(parse_with(R"("future":{"x":[1]})")); }

}  // namespace
}  // namespace alcove::api

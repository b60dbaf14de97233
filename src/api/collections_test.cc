// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/collections.h"

#include "api/testing/api_fixture.h"

namespace alcove::api::testing {
namespace {

class Collections : public ApiTest {};

TEST_F(Collections, TemplatesHaveTheDocumentedShape) {
  const Reply reply = send("GET", "/templates");
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.parsed(), json::parse(R"([{
      "templateID":"tpl00000000000000000","buildID":"11111111-2222-4333-8444-555555555555",
      "cpuCount":2,"memoryMB":1024,"diskSizeMB":10240,"public":true,"aliases":["base"],
      "names":["base"],"createdAt":"2027-01-15T08:00:00.123456Z",
      "updatedAt":"2027-01-15T08:00:00.123456Z","createdBy":null,"lastSpawnedAt":null,
      "spawnCount":0,"buildCount":1,"envdVersion":"0.6.13","buildStatus":"ready"}])"));
}

TEST_F(Collections, TemplatesAreThoseTheTeamSees) {
  CatalogEntry entry = template_entry("tpl00000000000000001", "own");
  entry.record.team = other_key_.team.id;
  entry.record.created_at += std::chrono::seconds(1);
  templates_.put(entry);
  EXPECT_EQ(send("GET", "/templates").array().size(), 1u);
  const json::array theirs = send_as_other("GET", "/templates").array();
  ASSERT_EQ(theirs.size(), 2u);
  EXPECT_EQ(theirs[1].as_object().at("names"), json::parse(R"(["others/own"])"));
  EXPECT_EQ(theirs[1].as_object().at("public"), false);
}

TEST_F(Collections, TemplatesOfAnotherTeamIdAre400) {
  EXPECT_EQ(send("GET", "/templates?teamID=" + key_.team.id.str()).status, 200);
  EXPECT_EQ(send("GET", "/templates?teamID=" + other_key_.team.id.str()).status, 400);
}

TEST_F(Collections, TemplateIsFoundByItsAliasAndTag) {
  CatalogEntry entry = template_entry("tpl00000000000000001", "own");
  entry.record.team = other_key_.team.id;
  templates_.put(entry);
  const json::value base = json::parse(R"({"templateID":"tpl00000000000000000","public":true})");
  for (const char* reference : {"base", "base:default", "base%3Adefault"}) {
    EXPECT_EQ(send("GET", std::string("/templates/aliases/") + reference).parsed(), base);
  }
  const json::value own = json::parse(R"({"templateID":"tpl00000000000000001","public":false})");
  for (const char* reference : {"own", "others%2Fown"}) {
    EXPECT_EQ(send_as_other("GET", std::string("/templates/aliases/") + reference).parsed(), own);
  }
  for (const char* reference : {"own", "none", "base:v2"}) {
    EXPECT_EQ(send("GET", std::string("/templates/aliases/") + reference).status, 404);
  }
  EXPECT_EQ(send("GET", "/templates/aliases/a%20b").status, 400);
}

TEST_F(Collections, ThereAreNoSnapshots) {
  for (const char* target :
       {"/snapshots", "/snapshots?sandboxID=i1&limit=10", "/snapshots?name=x"}) {
    const Reply reply = send("GET", target);
    EXPECT_EQ(reply.status, 200);
    EXPECT_EQ(reply.text, "[]");
    EXPECT_FALSE(reply.headers.has("X-Next-Token"));
  }
  EXPECT_EQ(send("GET", "/snapshots?limit=0").status, 400);
}

TEST_F(Collections, BrokenQueriesAreRefused) {
  for (const char* target : {"/templates?teamID=%zz", "/snapshots?name=%zz"}) {
    expect_error(send("GET", target), 400, "validation error: the query is not properly encoded");
  }
}

TEST_F(Collections, TeamIsShownToItsKeyInEitherHeader) {
  const json::value expected = json::array{json::object{{"teamID", key_.team.id.str()},
                                                        {"name", "default"},
                                                        {"apiKey", key_.secret},
                                                        {"isDefault", true}}};
  EXPECT_EQ(send("GET", "/teams").parsed(), expected);
  const Reply bearer =
      send_with("GET", "/teams", "", {{"Host", "x"}, {"Authorization", "Bearer " + key_.secret}});
  EXPECT_EQ(bearer.status, 200);
  EXPECT_EQ(bearer.parsed(), expected);
  EXPECT_EQ(send_with("GET", "/teams", "", {{"Host", "x"}, {"Authorization", "Bearer jwt"}}).status,
            401);
}

}  // namespace
}  // namespace alcove::api::testing

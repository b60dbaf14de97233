// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_read.h"

#include "api/testing/api_fixture.h"
#include "base/time_format.h"
#include "http/url.h"

namespace alcove::api::testing {
namespace {

using std::chrono::microseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;

class ReadSandboxes : public ApiTest {
 protected:
  // The ids in a list's answer, in its order.
  static std::vector<std::string> ids(const Reply& reply) {
    EXPECT_EQ(reply.status, 200) << reply.text;
    std::vector<std::string> out;
    for (const json::value& item : reply.array()) {
      out.emplace_back(item.as_object().at("sandboxID").as_string());
    }
    return out;
  }

  std::shared_ptr<node::testing::FakeSandbox> add_with_metadata(
      const std::string& id, std::map<std::string, std::string> metadata) {
    store::Sandbox record = add_sandbox(id)->record();
    record.metadata = std::move(metadata);
    return node_.add(std::move(record));
  }
};

TEST_F(ReadSandboxes, DetailHasEveryFieldClientsInsistOn) {
  store::Sandbox record = add_sandbox("i1")->record();
  record.metadata = {{"k", "v"}};
  record.secure = true;
  record.envd_token = "token";
  record.allow_internet_access = false;
  node_.add(record);
  const Reply reply = send("GET", "/sandboxes/i1");
  ASSERT_EQ(reply.status, 200);
  EXPECT_EQ(reply.parsed(), json::parse(R"({
      "sandboxID":"i1","templateID":"tpl00000000000000000","clientID":"6532622b",
      "envdVersion":"0.6.13","alias":"base","state":"running",
      "startedAt":"2027-01-15T08:00:00.123456Z","endAt":"2027-01-15T08:05:00.123456Z",
      "cpuCount":2,"memoryMB":1024,"diskSizeMB":10240,"metadata":{"k":"v"},"volumeMounts":[],
      "isolation":"fake","envdAccessToken":"token","allowInternetAccess":false,
      "lifecycle":{"autoResume":false,"onTimeout":"kill"}})"));
}

TEST_F(ReadSandboxes, NothingIsNullInABareDetail) {
  add_sandbox("i1");
  const json::object detail = send("GET", "/sandboxes/i1").object();
  for (const auto& [key, value] : detail) EXPECT_FALSE(value.is_null()) << key;
  for (const char* absent : {"network", "domain", "envdAccessToken", "allowInternetAccess"}) {
    EXPECT_FALSE(detail.contains(absent)) << absent;
  }
}

TEST_F(ReadSandboxes, IdMayHaveAClientSuffix) {
  add_sandbox("i1");
  EXPECT_EQ(send("GET", "/sandboxes/i1-6532622b").object().at("sandboxID"), "i1");
}

TEST_F(ReadSandboxes, ImpossibleIdIs400AndUnknownIs404) {
  for (const char* id : {"I1", "i1-a-b", "i_1", "i1%2Fx", "-i1", "i1-"}) {
    expect_error(send("GET", std::string("/sandboxes/") + id), 400, "Invalid sandbox ID");
  }
  expect_error(send("GET", "/sandboxes/nonexistingsandbox"), 404,
               "sandbox 'nonexistingsandbox' was not found");
}

TEST_F(ReadSandboxes, AnotherTeamsSandboxDoesNotExist) {
  add_sandbox("i1");
  EXPECT_EQ(send_as_other("GET", "/sandboxes/i1").status, 404);
  EXPECT_EQ(ids(send_as_other("GET", "/sandboxes")), std::vector<std::string>{});
  const Reply list = send_as_other("GET", "/v2/sandboxes");
  EXPECT_EQ(ids(list), std::vector<std::string>{});
  EXPECT_EQ(list.header("X-Total-Running"), "0");
}

TEST_F(ReadSandboxes, DeadSandboxIsNotShown) {
  add_sandbox("i1")->end();
  EXPECT_EQ(send("GET", "/sandboxes/i1").status, 404);
  EXPECT_TRUE(send("GET", "/v2/sandboxes").array().empty());
}

TEST_F(ReadSandboxes, OldListIsNewestFirst) {
  add_sandbox("iold", seconds(20));
  add_sandbox("inew", seconds(1));
  add_sandbox("imid", seconds(10));
  const Reply reply = send("GET", "/sandboxes");
  EXPECT_THAT(ids(reply), ElementsAre("inew", "imid", "iold"));
  EXPECT_EQ(reply.header("X-Total-Running"), "");
  const json::object item = reply.array()[0].as_object();
  for (const char* field : {"templateID", "sandboxID", "clientID", "startedAt", "endAt", "cpuCount",
                            "memoryMB", "diskSizeMB", "state", "envdVersion", "metadata"}) {
    EXPECT_TRUE(item.contains(field)) << field;
  }
  EXPECT_FALSE(item.contains("envdAccessToken"));
}

TEST_F(ReadSandboxes, EqualStartsAreOrderedById) {
  add_sandbox("ib");
  add_sandbox("ia");
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes")), ElementsAre("ia", "ib"));
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?order=asc")), ElementsAre("ib", "ia"));
}

TEST_F(ReadSandboxes, PagesCoverEverythingOnceInBothOrders) {
  std::vector<std::string> newest_first;
  for (int i = 0; i < 12; ++i) {
    const std::string id = "i" + std::to_string(100 + i);
    // Pairs share their start, so that a page may end between equals.
    add_sandbox(id, seconds(i / 2));
    newest_first.push_back(id);
  }
  for (const std::string order : {"desc", "asc"}) {
    std::vector<std::string> expected = newest_first;
    if (order == "asc") std::reverse(expected.begin(), expected.end());
    std::vector<std::string> seen;
    std::string token;
    int pages = 0;
    do {
      std::string target = "/v2/sandboxes?limit=5&order=" + order;
      if (!token.empty()) target += "&nextToken=" + http::percent_encode(token);
      const Reply reply = send("GET", target);
      EXPECT_EQ(reply.header("X-Total-Running"), "12");
      for (const std::string& id : ids(reply)) seen.push_back(id);
      token = reply.header("X-Next-Token");
      ++pages;
    } while (!token.empty() && pages < 10);
    EXPECT_EQ(seen, expected);
    EXPECT_EQ(pages, 3);
  }
}

TEST_F(ReadSandboxes, LastPageHasNoTokenEvenWhenItIsFull) {
  add_sandbox("i1", seconds(2));
  add_sandbox("i2", seconds(1));
  EXPECT_NE(send("GET", "/v2/sandboxes?limit=1").header("X-Next-Token"), "");
  EXPECT_EQ(send("GET", "/v2/sandboxes?limit=2").header("X-Next-Token"), "");
}

TEST_F(ReadSandboxes, PagingGoesOnWhenTheLastShownSandboxIsGone) {
  add_sandbox("i1", seconds(3));
  const auto middle = add_sandbox("i2", seconds(2));
  add_sandbox("i3", seconds(1));
  const std::string token = send("GET", "/v2/sandboxes?limit=2").header("X-Next-Token");
  middle->end();
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?limit=2&nextToken=" + token)), ElementsAre("i1"));
}

TEST_F(ReadSandboxes, TokenOfTheOtherOrderIs400) {
  add_sandbox("i1", seconds(2));
  add_sandbox("i2", seconds(1));
  const std::string token = send("GET", "/v2/sandboxes?limit=1").header("X-Next-Token");
  EXPECT_EQ(send("GET", "/v2/sandboxes?order=asc&nextToken=" + token).status, 400);
  EXPECT_EQ(send("GET", "/v2/sandboxes?nextToken=rubbish").status, 400);
}

TEST_F(ReadSandboxes, StateFilter) {
  add_sandbox("i1");
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?state=running")), ElementsAre("i1"));
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?state=running,paused")), ElementsAre("i1"));
  const Reply paused = send("GET", "/v2/sandboxes?state=paused");
  EXPECT_TRUE(ids(paused).empty());
  EXPECT_FALSE(paused.headers.has("X-Total-Running"));
  EXPECT_EQ(send("GET", "/v2/sandboxes?state=asleep").status, 400);
}

TEST_F(ReadSandboxes, MetadataFilterIsExactAndDecodedThreeTimes) {
  add_with_metadata("i1", {{"my key", "a&b=c d"}, {"x", "y"}});
  add_with_metadata("i2", {{"my key", "a&b=c d"}});
  add_with_metadata("i3", {});
  const std::string wire = "metadata=my%252520key%3Da%252526b%25253Dc%252520d";
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?" + wire)), ElementsAre("i1", "i2"));
  EXPECT_THAT(ids(send("GET", "/sandboxes?" + wire)), ElementsAre("i1", "i2"));
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?" + wire + "%26x%3Dy")), ElementsAre("i1"));
  EXPECT_TRUE(ids(send("GET", "/v2/sandboxes?metadata=x%3Dyy")).empty());
  EXPECT_EQ(send("GET", "/v2/sandboxes?metadata=x").status, 400);
  EXPECT_EQ(send("GET", "/sandboxes?metadata=x%3Dy%3Dz").status, 400);
  EXPECT_EQ(ids(send("GET", "/v2/sandboxes?metadata=x%3Dy")).size(), 1u);
  EXPECT_EQ(send("GET", "/v2/sandboxes?metadata=x%3Dy").header("X-Total-Running"), "1");
}

TEST_F(ReadSandboxes, StartedAfterIsInclusive) {
  const auto sandbox = add_sandbox("i1", seconds(10));
  const WallTime started = sandbox->record().started_at;
  const auto query = [&](WallTime time) {
    return ids(
        send("GET", "/v2/sandboxes?startedAfter=" + http::percent_encode(format_rfc3339(time))));
  };
  EXPECT_THAT(query(started), ElementsAre("i1"));
  EXPECT_TRUE(query(started + microseconds(1)).empty());
  // As the JavaScript and Python clients write it, and with an unescaped plus.
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?startedAfter=2027-01-15T07%3A59%3A50.123Z")),
              ElementsAre("i1"));
  EXPECT_THAT(
      ids(send("GET", "/v2/sandboxes?startedAfter=2027-01-15T09%3A59%3A50.123456%2B02%3A00")),
      ElementsAre("i1"));
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?startedAfter=2027-01-15T09:59:50.123456+02:00")),
              ElementsAre("i1"));
  EXPECT_EQ(send("GET", "/v2/sandboxes?startedAfter=yesterday").status, 400);
}

TEST_F(ReadSandboxes, TemplateFilter) {
  add_template("tpl00000000000000002", "other");
  add_sandbox("i1");
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?template=base")), ElementsAre("i1"));
  EXPECT_THAT(ids(send("GET", "/v2/sandboxes?template=tpl00000000000000000")), ElementsAre("i1"));
  EXPECT_TRUE(ids(send("GET", "/v2/sandboxes?template=other")).empty());
  EXPECT_TRUE(ids(send("GET", "/v2/sandboxes?template=unknown")).empty());
  expect_error(send("GET", "/v2/sandboxes?template=base%3Adefault"), 400,
               "the template filter takes no tag");
}

TEST_F(ReadSandboxes, BadLimitsAndOrdersAre400) {
  for (const char* query : {"limit=0", "limit=101", "limit=-1", "limit=x", "limit=", "order=up"}) {
    EXPECT_EQ(send("GET", std::string("/v2/sandboxes?") + query).status, 400) << query;
  }
  EXPECT_EQ(send("GET", "/v2/sandboxes?limit=%zz").status, 400);
}

}  // namespace
}  // namespace alcove::api::testing

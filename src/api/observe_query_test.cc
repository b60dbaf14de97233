// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/observe_query.h"

#include <gtest/gtest.h>

namespace alcove::api {
namespace {

using namespace std::chrono_literals;

constexpr const char* kBadNumbers[] = {
    "-1", "x", "1.5", "1e3", " 1", "99999999999999999999", "253402300800000000"};

TEST(MetricsQuery, CoversWholeSeconds) {
  const auto all = parse_metrics_query("");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->from, WallTime::min());
  EXPECT_EQ(all->until, WallTime::max());
  const auto one = parse_metrics_query("start=1800000000&end=1800000000");
  ASSERT_TRUE(one) << one.error().message;
  EXPECT_EQ(one->from, WallTime(1800000000s));
  EXPECT_EQ(one->until, WallTime(1800000001s) - 1us);
  EXPECT_TRUE(parse_metrics_query("start=&end="));
}

TEST(MetricsQuery, RefusesWhatIsNoRange) {
  const auto backwards = parse_metrics_query("start=2&end=1");
  ASSERT_FALSE(backwards);
  EXPECT_EQ(backwards.error().status, 400);
  EXPECT_EQ(backwards.error().message, "the start of the time range is later than its end");
  for (const std::string bad : kBadNumbers) {
    for (const char* name : {"start=", "end="}) {
      const auto refused = parse_metrics_query(name + bad);
      ASSERT_FALSE(refused) << name << bad;
      EXPECT_EQ(refused.error().status, 400);
    }
  }
  EXPECT_FALSE(parse_metrics_query("start=%zz"));
}

TEST(BulkMetricsQuery, TakesIdsJoinedOrRepeated) {
  for (const char* text :
       {"sandbox_ids=ia,ib", "sandbox_ids=ia&sandbox_ids=ib", "sandbox_ids=ia%2Cib-6532622b"}) {
    const auto ids = parse_bulk_metrics_query(text);
    ASSERT_TRUE(ids) << ids.error().message;
    EXPECT_EQ(*ids, (std::vector<SandboxId>{SandboxId("ia"), SandboxId("ib")}));
  }
}

TEST(BulkMetricsQuery, Limits) {
  for (const char* bad : {"", "sandbox_ids=", "ids=ia", "sandbox_ids=ia,", "sandbox_ids=IA",
                          "sandbox_ids=ia,ia", "sandbox_ids=ia,ia-6532622b"}) {
    EXPECT_FALSE(parse_bulk_metrics_query(bad)) << bad;
  }
  std::string many = "sandbox_ids=i0";
  for (int i = 1; i < 100; ++i) many += ",i" + std::to_string(i);
  EXPECT_EQ(parse_bulk_metrics_query(many)->size(), 100u);
  EXPECT_FALSE(parse_bulk_metrics_query(many + ",i100"));
}

TEST(LogsQuery, FirstGeneration) {
  const auto all = parse_logs_query_v1("");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->limit, 1000u);
  EXPECT_EQ(all->order, Order::kOldestFirst);
  const auto some = parse_logs_query_v1("start=1800000000123&limit=5");
  ASSERT_TRUE(some);
  EXPECT_EQ(some->from, WallTime(1800000000123ms));
  EXPECT_EQ(some->until, WallTime::max());
  EXPECT_EQ(some->limit, 5u);
  EXPECT_EQ(parse_logs_query_v1("limit=0")->limit, 0u);
  for (const std::string bad : kBadNumbers) {
    EXPECT_FALSE(parse_logs_query_v1("start=" + bad)) << bad;
    EXPECT_FALSE(parse_logs_query_v1("limit=" + bad)) << bad;
  }
}

TEST(LogsQuery, SecondGeneration) {
  const auto all = parse_logs_query_v2("");
  ASSERT_TRUE(all);
  EXPECT_EQ(all->limit, 1000u);
  EXPECT_EQ(all->order, Order::kNewestFirst);
  EXPECT_EQ(all->min_level, node::LogLevel::kDebug);
  const auto back = parse_logs_query_v2("cursor=1800000000123&level=warn&search=a%20B&limit=1000");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(back->until, WallTime(1800000000124ms) - 1us);
  EXPECT_EQ(back->from, WallTime::min());
  EXPECT_EQ(back->min_level, node::LogLevel::kWarn);
  EXPECT_EQ(back->search, "a B");
  const auto forward = parse_logs_query_v2("cursor=1800000000123&direction=forward");
  ASSERT_TRUE(forward);
  EXPECT_EQ(forward->order, Order::kOldestFirst);
  EXPECT_EQ(forward->from, WallTime(1800000000123ms));
  for (const char* bad : {"limit=1001", "limit=-1", "cursor=x", "direction=up", "level=INFO",
                          "level=fatal", "search=%zz"}) {
    EXPECT_FALSE(parse_logs_query_v2(bad)) << bad;
  }
  std::string long_text = "search=";
  for (int i = 0; i < 256; ++i) long_text += "%C3%BC";
  EXPECT_TRUE(parse_logs_query_v2(long_text));
  EXPECT_FALSE(parse_logs_query_v2(long_text + "x"));
}

}  // namespace
}  // namespace alcove::api

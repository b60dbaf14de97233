// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/list_query.h"

#include <gtest/gtest.h>

#include <string>

#include "api/pagination.h"
#include "base/base64.h"

namespace alcove::api {
namespace {

TEST(ListQuery, EmptyQueryHasTheDefaults) {
  const auto query = parse_list_query("");
  ASSERT_TRUE(query);
  EXPECT_TRUE(query->running && query->paused);
  EXPECT_EQ(query->order, Order::kNewestFirst);
  EXPECT_EQ(query->limit, 100u);
  EXPECT_TRUE(query->metadata.empty());
  EXPECT_FALSE(query->after || query->started_after || query->template_reference);
}

TEST(ListQuery, EmptyParametersCountAsNotGiven) {
  const auto query = parse_list_query("metadata=&state=&order=&startedAfter=&template=&nextToken=");
  ASSERT_TRUE(query) << query.error().message;
  EXPECT_TRUE(query->running && query->paused);
}

TEST(ListQuery, StatesMayBeJoinedOrRepeated) {
  for (const char* text :
       {"state=running,paused", "state=running&state=paused", "state=running%2Cpaused"}) {
    const auto query = parse_list_query(text);
    ASSERT_TRUE(query) << text;
    EXPECT_TRUE(query->running && query->paused) << text;
  }
  EXPECT_FALSE(parse_list_query("state=paused")->running);
  EXPECT_FALSE(parse_list_query("state=running,"));
}

TEST(MetadataFilter, IsTripleEncodedOnTheWire) {
  const auto filter = parse_metadata_query("metadata=my%252520key%3Da%252526b%25253Dc%252520d");
  ASSERT_TRUE(filter);
  EXPECT_EQ(*filter, (MetadataFilter{{"my key", "a&b=c d"}}));
}

TEST(MetadataFilter, BrokenPairsAre400) {
  for (const char* value : {"a", "a=b=c", "a=b&", "&", "%zz", "a=%zz"}) {
    const auto filter = parse_metadata_filter(value);
    ASSERT_FALSE(filter) << value;
    EXPECT_EQ(filter.error().status, 400);
  }
  EXPECT_TRUE(parse_metadata_filter("=")) << "an empty key with an empty value is a pair";
}

TEST(PageToken, ComesBack) {
  for (const Order order : {Order::kNewestFirst, Order::kOldestFirst}) {
    const PageToken token{.time = WallTime(std::chrono::microseconds(1'800'000'000'123'456)),
                          .id = "i0123456789abcdefghij",
                          .order = order};
    const std::string text = encode_page_token(token);
    EXPECT_EQ(text.find_first_of("+/= "), std::string::npos);
    const auto parsed = parse_page_token(text, order);
    ASSERT_TRUE(parsed);
    EXPECT_EQ(parsed->time, token.time);
    EXPECT_EQ(parsed->id, token.id);
  }
}

TEST(PageToken, RubbishIsRefused) {
  for (const std::string content : {"", "x", "2027-01-15T08:00:00Z", "2027-01-15T08:00:00Z__",
                                    "yesterday__i1", "__i1", "__asc"}) {
    EXPECT_FALSE(parse_page_token(to_base64(content), Order::kNewestFirst)) << content;
    EXPECT_FALSE(parse_page_token(to_base64(content), Order::kOldestFirst)) << content;
  }
  EXPECT_FALSE(parse_page_token("not base64!", Order::kNewestFirst));
}

}  // namespace
}  // namespace alcove::api

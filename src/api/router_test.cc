// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace alcove::api {
namespace {

using ::testing::ElementsAre;

Task<http::Response> one(Services&, const Call&) { co_return http::Response{}; }
Task<http::Response> two(Services&, const Call&) { co_return http::Response{}; }

constexpr Route kTable[] = {
    {"GET", "/things/{id}", Access::kApiKey, one},
    {"GET", "/things/all", Access::kApiKey, two},
    {"POST", "/things/{id}/parts/{part}", Access::kApiKey, one},
};

TEST(Router, TakesParametersFromTheirPlaces) {
  const Match match = match_route(kTable, "POST", {"things", "a/b", "parts", "c"});
  ASSERT_EQ(match.route, &kTable[2]);
  EXPECT_THAT(match.parameters, ElementsAre("a/b", "c"));
}

TEST(Router, FixedSegmentGoesBeforeAParameter) {
  EXPECT_EQ(match_route(kTable, "GET", {"things", "all"}).route, &kTable[1]);
  EXPECT_EQ(match_route(kTable, "GET", {"things", "other"}).route, &kTable[0]);
}

TEST(Router, HeadUsesTheRouteOfGet) {
  EXPECT_EQ(match_route(kTable, "HEAD", {"things", "all"}).route, &kTable[1]);
}

TEST(Router, NamesTheMethodsOfAPath) {
  const Match match = match_route(kTable, "PUT", {"things", "all"});
  EXPECT_EQ(match.route, nullptr);
  EXPECT_THAT(match.allowed, ElementsAre("GET"));
}

TEST(Router, PathsOfOtherLengthsAreUnknown) {
  EXPECT_TRUE(match_route(kTable, "GET", {"things"}).allowed.empty());
  EXPECT_TRUE(match_route(kTable, "GET", {"things", "a", "b"}).allowed.empty());
  EXPECT_TRUE(match_route(kTable, "GET", {}).allowed.empty());
}

}  // namespace
}  // namespace alcove::api

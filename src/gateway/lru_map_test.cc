// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/lru_map.h"

#include <gtest/gtest.h>

namespace alcove::gateway {
namespace {

TEST(LruMap, WhatWasNotUsedForLongestMakesRoom) {
  LruMap<int> map(2);
  map.put("a", 1);
  map.put("b", 2);
  ASSERT_NE(map.find("a"), nullptr);
  map.put("c", 3);
  EXPECT_EQ(map.find("b"), nullptr);
  EXPECT_EQ(*map.find("a"), 1);
  EXPECT_EQ(*map.find("c"), 3);
  EXPECT_EQ(map.size(), 2u);
}

TEST(LruMap, ReplacesAndErases) {
  LruMap<int> map(2);
  map.put("a", 1);
  *map.put("a", 2) += 1;
  EXPECT_EQ(*map.find("a"), 3);
  EXPECT_EQ(map.size(), 1u);
  map.erase("a");
  map.erase("a");
  EXPECT_EQ(map.find("a"), nullptr);
  EXPECT_EQ(map.size(), 0u);
}

}  // namespace
}  // namespace alcove::gateway

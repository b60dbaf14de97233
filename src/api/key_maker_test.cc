// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/key_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/sha256.h"
#include "store/testing/memory_store.h"

namespace alcove::api {
namespace {

class KeyMaker : public ::testing::Test {
 protected:
  FakeClock clock_;
  store::testing::MemoryStore store_;
};

TEST_F(KeyMaker, KeyHasTheFormThatEveryClientAccepts) {
  const auto made = make_key(store_, clock_, kDefaultTeam, "first");
  ASSERT_TRUE(made);
  ASSERT_EQ(made->secret.size(), 44u);
  EXPECT_EQ(made->secret.substr(0, 4), "e2b_");
  EXPECT_EQ(made->secret.substr(4).find_first_not_of("0123456789abcdef"), std::string::npos);
}

TEST_F(KeyMaker, StoreKeepsOnlyHashAndMask) {
  const auto made = make_key(store_, clock_, kDefaultTeam, "first");
  const auto keys = store_.list_keys();
  ASSERT_EQ(keys->size(), 1u);
  const store::ApiKey& record = keys->front();
  EXPECT_EQ(record.sha256_hex, sha256_hex(made->secret));
  EXPECT_EQ(record.mask_prefix, made->secret.substr(4, 2));
  EXPECT_EQ(record.mask_suffix, made->secret.substr(40));
  EXPECT_EQ(record.name, "first");
}

TEST_F(KeyMaker, TeamIsMadeOnce) {
  const auto first = make_key(store_, clock_, "red", "a");
  const auto second = make_key(store_, clock_, "red", "b");
  const auto third = make_key(store_, clock_, "blue", "c");
  EXPECT_EQ(first->team.id, second->team.id);
  EXPECT_NE(first->team.id, third->team.id);
  EXPECT_NE(first->secret, second->secret);
  EXPECT_EQ(store_.list_teams()->size(), 2u);
}

TEST_F(KeyMaker, TeamMadeByAnotherProcessInBetweenIsUsed) {
  store::testing::MemoryStore* store = &store_;
  bool raced = false;
  store_.before_call = [&](std::string_view call) -> Result<void> {
    if (call == "put_team" && !raced) {
      raced = true;
      return store->put_team({.id = TeamId("theirs"), .name = "red", .created_at = {}});
    }
    return {};
  };
  const auto made = make_key(store_, clock_, "red", "a");
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->team.id, TeamId("theirs"));
}

TEST_F(KeyMaker, ImpossibleTeamNamesAreRefused) {
  for (const char* name : {"", "Red", "a b", "a/b", "ü"}) {
    const auto made = make_key(store_, clock_, name, "a");
    ASSERT_FALSE(made) << name;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
  }
  EXPECT_FALSE(make_key(store_, clock_, std::string(64, 'a'), "a"));
  EXPECT_TRUE(make_key(store_, clock_, std::string(63, 'a'), "a"));
}

TEST_F(KeyMaker, NoKeyWithoutAStore) {
  store_.before_call = [](std::string_view call) -> Result<void> {
    if (call == "put_key") return fail(Code::kResourceExhausted, "disk full");
    return {};
  };
  EXPECT_FALSE(make_key(store_, clock_, "red", "a"));
}

}  // namespace
}  // namespace alcove::api

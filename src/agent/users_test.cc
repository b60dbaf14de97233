// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/users.h"

#include <gtest/gtest.h>

#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

constexpr char kPasswd[] =
    "root:x:0:0:root:/root:/bin/bash\n"
    "# a comment\n"
    "broken:x:notanumber:0::/:/bin/sh\n"
    "user:x:1000:1001:,,,:/home/user:/bin/bash\n"
    "homeless:x:5:5:::\n";
constexpr char kGroup[] =
    "root:x:0:\n"
    "user:x:1001:\n"
    "sudo:x:27:other,user\n"
    "docker:x:999:user\n"
    "twin:x:27:user\n";

TEST(Accounts, FindsUserWithPrimaryGroupFirstAndNoGroupTwice) {
  const Accounts accounts(kPasswd, kGroup);
  const auto user = accounts.find("user");
  ASSERT_TRUE(user);
  EXPECT_EQ(user->uid, 1000u);
  EXPECT_EQ(user->gid, 1001u);
  EXPECT_EQ(user->home, "/home/user");
  EXPECT_EQ(user->groups, (std::vector<gid_t>{1001, 27, 999}));
}

TEST(Accounts, NumbersAndBrokenLinesAreNoUsers) {
  const Accounts accounts(kPasswd, kGroup);
  EXPECT_FALSE(accounts.find("1000"));
  EXPECT_FALSE(accounts.find("broken"));
  EXPECT_FALSE(accounts.find(""));
  EXPECT_EQ(accounts.find("homeless")->home, "/");
}

TEST(Accounts, RootExistsWithoutAnyFile) {
  const Accounts accounts("", "");
  const auto root = accounts.find("root");
  ASSERT_TRUE(root);
  EXPECT_EQ(root->uid, 0u);
  EXPECT_TRUE(root->home == "/root" || root->home == "/");
  EXPECT_FALSE(accounts.find("user"));
}

TEST(Accounts, IdsWithoutNamesAreDecimal) {
  const Accounts accounts(kPasswd, kGroup);
  EXPECT_EQ(accounts.user_name(1000), "user");
  EXPECT_EQ(accounts.user_name(4711), "4711");
  EXPECT_EQ(accounts.group_name(27), "sudo");
  EXPECT_EQ(accounts.group_name(4711), "4711");
}

TEST(UserDatabase, SeesAChangedFile) {
  const testing::TempDir dir;
  testing::write_text(dir / "passwd", "a:x:1:1::/a:\n");
  UserDatabase users(dir / "passwd", dir / "group");
  EXPECT_TRUE(users.find("a"));
  const auto before = users.accounts();
  EXPECT_EQ(before, users.accounts());
  const auto unknown = users.find("b");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kUnauthenticated);

  testing::write_text(dir / "passwd", "b:x:2:2::/b:/bin/sh\n");
  EXPECT_TRUE(users.find("b"));
  EXPECT_FALSE(users.find("a"));
}

TEST(UserDatabase, RootWorksWithoutPasswd) {
  UserDatabase users("/nonexistent/passwd", "/nonexistent/group");
  EXPECT_TRUE(users.find("root"));
}

}  // namespace
}  // namespace alcove::agent

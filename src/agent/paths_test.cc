// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/paths.h"

#include <gtest/gtest.h>

namespace alcove::agent {
namespace {

TEST(CleanPath, WorksOnTheTextAlone) {
  EXPECT_EQ(clean_path("/"), "/");
  EXPECT_EQ(clean_path("//a///b/"), "/a/b");
  EXPECT_EQ(clean_path("/a/./b/../c"), "/a/c");
  EXPECT_EQ(clean_path("/../../a"), "/a");
  EXPECT_EQ(clean_path("/a/.."), "/");
}

TEST(ResolvePath, FollowsTheProtocol) {
  const PathBase base{"/home/user", {}};
  EXPECT_EQ(resolve_path("", base), "/home/user");
  EXPECT_EQ(resolve_path("~", base), "/home/user");
  EXPECT_EQ(resolve_path("~/x/../y", base), "/home/user/y");
  EXPECT_EQ(resolve_path("a/b", base), "/home/user/a/b");
  EXPECT_EQ(resolve_path("../b", base), "/home/b");
  EXPECT_EQ(resolve_path("/a/../b//c/", base), "/a/../b//c/");
}

TEST(ResolvePath, DefaultDirectoryIsForTheEmptyPathOnly) {
  const PathBase base{"/home/user", "/code"};
  EXPECT_EQ(resolve_path("", base), "/code");
  EXPECT_EQ(resolve_path("x", base), "/home/user/x");
}

TEST(ResolvePath, RefusesOtherHomesAndNulBytes) {
  const PathBase base{"/home/user", {}};
  EXPECT_EQ(resolve_path("~root", base).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(resolve_path(std::string_view("/a\0b", 4), base).error().code(),
            Code::kInvalidArgument);
}

TEST(BaseName, IgnoresTrailingSlashes) {
  EXPECT_EQ(base_name("/a/b"), "b");
  EXPECT_EQ(base_name("/a/b//"), "b");
  EXPECT_EQ(base_name("/"), "/");
  EXPECT_EQ(base_name("plain"), "plain");
}

TEST(ParentPath, IgnoresTrailingSlashes) {
  EXPECT_EQ(parent_path("/a/b"), "/a");
  EXPECT_EQ(parent_path("/a/b//"), "/a");
  EXPECT_EQ(parent_path("/a"), "/");
  EXPECT_EQ(parent_path("/"), "/");
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/fs_operations.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "agent/file_io.h"
#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

using testing::write_text;

const User kOwner{"user", 1000, 1001, "/home/user", {1001}};
const Accounts kAccounts("user:x:1000:1001::/home/user:\n", "user:x:1001:\n");

std::vector<std::string> paths_of(const std::vector<EntryInfo>& entries) {
  std::vector<std::string> paths;
  for (const EntryInfo& entry : entries) paths.push_back(entry.path);
  return paths;
}

TEST(ReadEntry, DescribesAFile) {
  const testing::TempDir dir;
  write_text(dir / "f", "1234");
  ::chmod((dir / "f").c_str(), 0640);
  ASSERT_EQ(::chown((dir / "f").c_str(), 1000, 1001), 0);
  const auto entry = read_entry(dir / "f", kAccounts);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->name, "f");
  EXPECT_EQ(entry->type, FileType::kFile);
  EXPECT_EQ(entry->size, 4);
  EXPECT_EQ(entry->mode, 0640u);
  EXPECT_EQ(entry->permissions, "-rw-r-----");
  EXPECT_EQ(entry->owner, "user");
  EXPECT_EQ(entry->group, "user");
  EXPECT_FALSE(entry->symlink_target);
  EXPECT_FALSE(entry->is_symlink);
}

TEST(ReadEntry, LinksDescribeTheirTarget) {
  const testing::TempDir dir;
  write_text(dir / "f", "1234");
  ASSERT_EQ(::symlink("f", (dir / "link").c_str()), 0);
  ASSERT_EQ(::symlink("nowhere", (dir / "broken").c_str()), 0);
  const auto link = read_entry(dir / "link", kAccounts);
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->is_symlink);
  EXPECT_EQ(link->type, FileType::kFile);
  EXPECT_EQ(link->size, 1);
  EXPECT_EQ(link->symlink_target, dir / "f");
  const auto broken = read_entry(dir / "broken", kAccounts);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->type, FileType::kUnspecified);
  EXPECT_EQ(broken->mode, 0u);
  EXPECT_EQ(broken->symlink_target, dir / "broken");
}

TEST(ReadEntry, OnlyMissingIsNotFound) {
  const testing::TempDir dir;
  write_text(dir / "f", "");
  EXPECT_EQ(read_entry(dir / "nope", kAccounts).error().code(), Code::kNotFound);
  EXPECT_EQ(read_entry(dir / "f/x", kAccounts).error().code(), Code::kInternal);
}

TEST(ListDirectory, IsPreOrderAndSortedByBytes) {
  const testing::TempDir dir;
  for (const char* name : {"b", "a", "a/z", "a/y", "a/y/deep"}) {
    ASSERT_EQ(::mkdir((dir / name).c_str(), 0755), 0);
  }
  write_text(dir / "B", "");
  ASSERT_EQ(::symlink("a", (dir / "c").c_str()), 0);
  const auto depth1 = list_directory(dir.path(), 0, kAccounts);
  ASSERT_TRUE(depth1);
  EXPECT_EQ(paths_of(*depth1),
            (std::vector<std::string>{dir / "B", dir / "a", dir / "b", dir / "c"}));
  const auto depth3 = list_directory(dir.path(), 3, kAccounts);
  EXPECT_EQ(paths_of(*depth3),
            (std::vector<std::string>{dir / "B", dir / "a", dir / "a/y", dir / "a/y/deep",
                                      dir / "a/z", dir / "b", dir / "c"}));
  // Through a link the requested prefix is kept.
  const auto through = list_directory(dir / "c", 1, kAccounts);
  EXPECT_EQ(paths_of(*through), (std::vector<std::string>{dir / "c/y", dir / "c/z"}));
}

TEST(ListDirectory, Errors) {
  const testing::TempDir dir;
  write_text(dir / "f", "");
  ASSERT_EQ(::symlink("loop", (dir / "loop").c_str()), 0);
  EXPECT_EQ(list_directory(dir / "nope", 1, kAccounts).error().code(), Code::kNotFound);
  EXPECT_EQ(list_directory(dir / "f", 1, kAccounts).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(list_directory(dir / "loop", 1, kAccounts).error().code(), Code::kFailedPrecondition);
}

TEST(ListDirectory, WhatCannotBeOpenedIsAnErrorAndNotEmpty) {
  const testing::TempDir dir;
  ASSERT_EQ(::mkdir((dir / "closed").c_str(), 0700), 0);
  ASSERT_EQ(::seteuid(1000), 0);
  const auto entries = list_directory(dir / "closed", 1, kAccounts);
  const auto around = list_directory(dir.path(), 2, kAccounts);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(entries);
  EXPECT_EQ(entries.error().code(), Code::kInternal);
  EXPECT_NE(entries.error().message().find(dir / "closed"), std::string::npos);
  // Deeper down it is left out.
  ASSERT_TRUE(around);
  EXPECT_EQ(paths_of(*around), std::vector<std::string>{dir / "closed"});
}

TEST(MakeDirectory, MakesAllLevelsForTheOwner) {
  const testing::TempDir dir;
  const auto made = make_directory(dir / "a/b/c/", kOwner, kAccounts);
  ASSERT_TRUE(made) << made.error().message();
  EXPECT_EQ(made->owner, "user");
  EXPECT_EQ(made->permissions, "drwxr-xr-x");
  EXPECT_EQ(read_entry(dir / "a", kAccounts)->owner, "user");
  EXPECT_EQ(make_directory(dir / "a/b", kOwner, kAccounts).error().code(), Code::kAlreadyExists);
  write_text(dir / "f", "");
  EXPECT_EQ(make_directory(dir / "f", kOwner, kAccounts).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(make_directory(dir / "f/x", kOwner, kAccounts).error().code(), Code::kInternal);
}

TEST(MoveEntry, MakesParentsAndReplaces) {
  const testing::TempDir dir;
  write_text(dir / "f", "new");
  ASSERT_TRUE(move_entry(dir / "f", dir / "x/y/g", kOwner, kAccounts));
  EXPECT_EQ(testing::read_text(dir / "x/y/g"), "new");
  const auto missing = move_entry(dir / "f", dir / "q/h", kOwner, kAccounts);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_TRUE(read_entry(dir / "q", kAccounts));
}

TEST(RemoveEntry, RemovesTreesButFollowsNoLinks) {
  const testing::TempDir dir;
  ASSERT_TRUE(make_directory(dir / "keep", kOwner, kAccounts));
  write_text(dir / "keep/f", "x");
  ASSERT_TRUE(make_directory(dir / "t/a/b", kOwner, kAccounts));
  ASSERT_TRUE(make_directory(dir / "t/c", kOwner, kAccounts));
  write_text(dir / "t/a/b/f", "x");
  ASSERT_EQ(::symlink((dir / "keep").c_str(), (dir / "t/c/link").c_str()), 0);
  ASSERT_TRUE(remove_entry(dir / "t"));
  EXPECT_FALSE(read_entry(dir / "t", kAccounts));
  EXPECT_EQ(testing::read_text(dir / "keep/f"), "x");
  EXPECT_TRUE(remove_entry(dir / "t"));
  ASSERT_EQ(::symlink((dir / "keep").c_str(), (dir / "link").c_str()), 0);
  EXPECT_TRUE(remove_entry(dir / "link"));
  EXPECT_EQ(testing::read_text(dir / "keep/f"), "x");
  EXPECT_EQ(remove_entry(dir / "keep/f/x").error().code(), Code::kInternal);
}

TEST(RemoveEntry, DepthIsNoLimit) {
  // In memory: on a disk this takes seconds.
  const testing::TempDir dir("/dev/shm");
  ASSERT_EQ(::mkdir((dir / "top").c_str(), 0755), 0);
  UniqueFd current(::open((dir / "top").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 3000; ++i) {
    ASSERT_EQ(::mkdirat(current.get(), "d", 0755), 0);
    current.reset(::openat(current.get(), "d", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(current.valid());
  }
  current.reset();
  ASSERT_TRUE(remove_entry(dir / "top"));
  EXPECT_FALSE(read_entry(dir / "top", kAccounts));
}

TEST(RemoveEntry, ManyDirectoriesThatAreNotEmpty) {
  const testing::TempDir dir;
  for (int i = 0; i < 2000; ++i) {
    ASSERT_TRUE(make_directory(dir / ("t/" + std::to_string(i)), kOwner, kAccounts));
    write_text(dir / ("t/" + std::to_string(i) + "/f"), "");
  }
  ASSERT_TRUE(remove_entry(dir / "t"));
  EXPECT_FALSE(read_entry(dir / "t", kAccounts));
}

TEST(RemoveEntry, WhatComesInMeanwhileIsRemovedToo) {
  for (int round = 0; round < 20; ++round) {
    const testing::TempDir dir("/dev/shm");
    ASSERT_TRUE(make_directory(dir / "t/a/b", kOwner, kAccounts));
    std::atomic<bool> begun = false;
    std::thread writer([&] {
      for (int i = 0; i < 100'000; ++i) {
        const int fd =
            ::open((dir / ("t/a/b/" + std::to_string(i))).c_str(), O_CREAT | O_WRONLY, 0644);
        if (fd < 0) return;
        ::close(fd);
        if (i == 10) begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    const auto removed = remove_entry(dir / "t");
    writer.join();
    EXPECT_TRUE(removed) << removed.error().message();
    EXPECT_FALSE(read_entry(dir / "t", kAccounts));
  }
}

TEST(Metadata, HeadersAreChecked) {
  const auto metadata = parse_metadata_headers({{"X-Metadata-Author", "me"},
                                                {"x-metadata-author", "you"},
                                                {"X-Metadata-", "x"},
                                                {"A", "b"}});
  ASSERT_TRUE(metadata);
  EXPECT_EQ(*metadata, (Metadata{{"author", "me"}}));
  EXPECT_FALSE(parse_metadata_headers({{"X-Metadata-A", "\xc3\xa4"}}));
  EXPECT_FALSE(parse_metadata_headers({{"X-Metadata-" + std::string(247, 'a'), "x"}}));
  EXPECT_FALSE(parse_metadata_headers({{"X-Metadata-A", std::string(4096, 'a')}}));
}

TEST(Metadata, ReplacesWhatWasThere) {
  const testing::TempDir dir;
  write_text(dir / "f", "");
  const auto fd = open_file(dir / "f", O_RDWR);
  ASSERT_TRUE(fd);
  if (::fsetxattr(fd->get(), "user.e2b.old", "1", 1, 0) != 0 && errno == EOPNOTSUPP) {
    GTEST_SKIP() << "no user attributes on this file system";
  }
  ASSERT_EQ(::fsetxattr(fd->get(), "user.other", "1", 1, 0), 0);
  const Metadata wanted{{"a", "1"}, {"b", std::string(600, 'x')}};
  ASSERT_TRUE(replace_metadata(fd->get(), wanted));
  EXPECT_EQ(read_metadata(dir / "f"), wanted);
  EXPECT_EQ(read_entry(dir / "f", kAccounts)->metadata, wanted);
  ASSERT_TRUE(replace_metadata(fd->get(), {}));
  EXPECT_TRUE(read_metadata(dir / "f").empty());
  EXPECT_EQ(::fgetxattr(fd->get(), "user.other", nullptr, 0), 1);
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/mount_points.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

using Walk = MountPoints::Walk;

// In a namespace of its own, so that what is mounted ends with the test.
class MountPointsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
    ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    ASSERT_EQ(::mkdir((dir_ / "a").c_str(), 0755), 0);
    ASSERT_EQ(::mkdir((dir_ / "a/b c").c_str(), 0755), 0);
  }
  void TearDown() override { (void)::umount2((dir_ / "a/b c").c_str(), MNT_DETACH); }

  void mount_at(const std::string& path, const char* type) {
    ASSERT_EQ(::mount(type, path.c_str(), type, 0, nullptr), 0);
  }

  testing::TempDir dir_;
  MountPoints points_;
};

TEST_F(MountPointsTest, SeesWhatIsMountedMeanwhile) {
  EXPECT_TRUE(points_.none_below(dir_.path(), Walk::kTree));
  mount_at(dir_ / "a/b c", "ramfs");
  EXPECT_FALSE(points_.none_below(dir_.path(), Walk::kTree));
  EXPECT_FALSE(points_.none_below(dir_ / "a", Walk::kTree));
  EXPECT_TRUE(points_.none_below(dir_ / "a/b c", Walk::kTree));
  EXPECT_TRUE(points_.none_below(dir_ / "a/b", Walk::kTree));
  ASSERT_EQ(::umount((dir_ / "a/b c").c_str()), 0);
  EXPECT_TRUE(points_.none_below(dir_.path(), Walk::kTree));
}

TEST_F(MountPointsTest, EntriesAreOnlyWhatLiesInTheDirectory) {
  mount_at(dir_ / "a/b c", "ramfs");
  EXPECT_TRUE(points_.none_below(dir_.path(), Walk::kEntries));
  EXPECT_FALSE(points_.none_below(dir_ / "a", Walk::kEntries));
}

TEST_F(MountPointsTest, TheKernelsOwnEntriesDoNotHang) {
  mount_at(dir_ / "a/b c", "tmpfs");
  EXPECT_TRUE(points_.none_below(dir_ / "a", Walk::kEntries));
  EXPECT_FALSE(points_.none_below(dir_ / "a", Walk::kTree));
  EXPECT_FALSE(points_.none_below("/", Walk::kTree));
}

}  // namespace
}  // namespace alcove::agent

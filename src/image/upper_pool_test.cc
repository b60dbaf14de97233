// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/upper_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "base/defer.h"
#include "base/log.h"
#include "base/strings.h"
#include "image/btrfs.h"
#include "image/btrfs_pool.h"
#include "image/files.h"
#include "image/plain_pool.h"
#include "image/testing/temp_dir.h"

namespace alcove::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

constexpr uint64_t kMiB = 1 << 20;

// Writes until the kernel refuses; returns the bytes written and the errno.
std::pair<uint64_t, int> fill(const std::string& path, uint64_t at_most) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  const std::string block(kMiB, 'x');
  uint64_t written = 0;
  while (written < at_most) {
    const ssize_t n = ::write(fd.get(), block.data(), block.size());
    if (n < 0) return {written, errno};
    written += static_cast<uint64_t>(n);
  }
  return {written, ::fsync(fd.get()) == 0 ? 0 : errno};
}

// Loop devices attached to files below `dir`.
int loops_below(const std::string& dir) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/block")) {
    const std::string file = read_text(entry.path().string() + "/loop/backing_file");
    if (file.starts_with(dir)) ++count;
  }
  return count;
}

class BtrfsPoolTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<UpperPool>> open() {
    return UpperPool::open({.data_dir = dir_.path(), .pool_size_bytes = 512 * kMiB});
  }
  void TearDown() override {
    const auto unmounted = unmount_pool(dir_.path());
    EXPECT_TRUE(unmounted) << unmounted.error().message();
    // Whoever looks for a loop device of its own may hold this one open for a moment.
    for (int tries = 0; loops_below(dir_.path()) > 0 && tries < 500; ++tries) ::usleep(10'000);
    EXPECT_EQ(loops_below(dir_.path()), 0);
  }
  TempDir dir_;
};

TEST_F(BtrfsPoolTest, GivesEachSandboxALimitedUpper) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  ASSERT_EQ((*pool)->kind(), "btrfs");
  const SandboxId id = make_sandbox_id();
  const SandboxId other = make_sandbox_id();
  auto upper = (*pool)->create(id, 64 * kMiB);
  ASSERT_TRUE(upper) << upper.error().message();
  ASSERT_TRUE((*pool)->create(other, 64 * kMiB));
  EXPECT_TRUE(std::filesystem::is_empty(upper->upper_dir));
  EXPECT_TRUE(std::filesystem::is_empty(upper->work_dir));
  EXPECT_EQ(stat_of(upper->upper_dir).st_mode & 07777, 0755u);
  EXPECT_EQ((*pool)->find(id).upper_dir, upper->upper_dir);
  EXPECT_THAT(*(*pool)->list(), UnorderedElementsAre(id, other));

  const auto [written, error] = fill(upper->upper_dir + "/big", 128 * kMiB);
  EXPECT_EQ(error, EDQUOT);
  EXPECT_GE(written, 56 * kMiB);
  EXPECT_LE(written, 64 * kMiB);
  // The neighbour is not touched.
  EXPECT_EQ(fill((*pool)->find(other).upper_dir + "/small", 8 * kMiB).second, 0);

  ASSERT_TRUE((*pool)->set_limit(id, 100 * kMiB));
  EXPECT_EQ(fill(upper->upper_dir + "/more", 16 * kMiB).second, 0);
  const UniqueFd fd(::open(upper->upper_dir.c_str(), O_RDONLY));
  ASSERT_EQ(::syncfs(fd.get()), 0);
  auto used = (*pool)->used_bytes(id);
  ASSERT_TRUE(used) << used.error().message();
  EXPECT_GE(*used, 72 * kMiB);
  EXPECT_LE(*used, 100 * kMiB);

  ASSERT_TRUE((*pool)->remove(id));
  EXPECT_FALSE(path_exists(upper->upper_dir));
  EXPECT_TRUE((*pool)->remove(id));
  EXPECT_THAT(*(*pool)->list(), ElementsAre(other));
}

TEST_F(BtrfsPoolTest, UseIsKnownBeforeItIsWrittenBack) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, 64 * kMiB);
  ASSERT_TRUE(upper) << upper.error().message();
  const uint64_t empty = (*pool)->used_bytes(id).value();
  EXPECT_GT(empty, 0u);
  EXPECT_LT(empty, kMiB);
  EXPECT_EQ(fill(upper->upper_dir + "/file", 8 * kMiB).second, 0);
  EXPECT_GE((*pool)->used_bytes(id).value(), 8 * kMiB);
  EXPECT_LT((*pool)->used_bytes(id).value(), 9 * kMiB);
  // What is deleted counts until the next commit.
  ASSERT_EQ(::unlink((upper->upper_dir + "/file").c_str()), 0);
  const UniqueFd fd(::open(upper->upper_dir.c_str(), O_RDONLY));
  ASSERT_EQ(::syncfs(fd.get()), 0);
  EXPECT_LT((*pool)->used_bytes(id).value(), kMiB);
}

TEST_F(BtrfsPoolTest, UseIsKnownWithoutSysfs) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, 64 * kMiB);
  ASSERT_TRUE(upper) << upper.error().message();
  EXPECT_EQ(fill(upper->upper_dir + "/file", 8 * kMiB).second, 0);
  const UniqueFd fd(::open(upper->upper_dir.c_str(), O_RDONLY));
  ASSERT_EQ(::syncfs(fd.get()), 0);
  const auto used = btrfs::used_bytes(fd.get(), "/nowhere");
  ASSERT_TRUE(used) << used.error().message();
  EXPECT_GE(*used, 8 * kMiB);
  EXPECT_LT(*used, 9 * kMiB);
}

TEST_F(BtrfsPoolTest, RemovesWhateverTheUserLeft) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, 64 * kMiB);
  ASSERT_TRUE(make_directories(upper->upper_dir + "/a/b/c"));
  write_text(upper->upper_dir + "/a/b/c/file", "x");
  ASSERT_EQ(::chmod((upper->upper_dir + "/a").c_str(), 0), 0);
  ASSERT_EQ(::mknod((upper->upper_dir + "/whiteout").c_str(), S_IFCHR, 0), 0);
  ASSERT_TRUE((*pool)->remove(id));
  EXPECT_THAT(*(*pool)->list(), ElementsAre());
}

TEST_F(BtrfsPoolTest, ServesAsUpperOfAnOverlayWithUserXattrs) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  auto upper = (*pool)->create(make_sandbox_id(), 64 * kMiB);
  ASSERT_TRUE(make_directories(dir_ / "lower"));
  ASSERT_TRUE(make_directories(dir_ / "merged"));
  write_text(dir_ / "lower/file", "x");
  const std::string options = "lowerdir=" + dir_.path() + "/lower,upperdir=" + upper->upper_dir +
                              ",workdir=" + upper->work_dir;
  ASSERT_EQ(::mount("overlay", (dir_ / "merged").c_str(), "overlay", 0, options.c_str()), 0)
      << errno;
  Defer unmount([&] { ::umount2((dir_ / "merged").c_str(), 0); });
  EXPECT_EQ(::setxattr((dir_ / "merged/file").c_str(), "user.e2b.author", "me", 2, 0), 0);
  EXPECT_EQ(fill(dir_ / "merged/big", 128 * kMiB).second, EDQUOT);
}

TEST_F(BtrfsPoolTest, AtItsLimitNeedsALittleMoreToBecomeAnOverlay) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, 16 * kMiB);
  ASSERT_TRUE(make_directories(dir_ / "lower"));
  ASSERT_TRUE(make_directories(dir_ / "merged"));
  ASSERT_EQ(fill(upper->upper_dir + "/big", 32 * kMiB).second, EDQUOT);
  for (int i = 0; fill(cat(upper->upper_dir, "/small", i), 4096).second == 0; ++i) {
  }
  const std::string options = "volatile,lowerdir=" + dir_.path() +
                              "/lower,upperdir=" + upper->upper_dir + ",workdir=" + upper->work_dir;
  const auto mounts_writable = [&] {
    const std::string at = dir_ / "merged";
    EXPECT_EQ(::mount("overlay", at.c_str(), "overlay", 0, options.c_str()), 0) << errno;
    struct statvfs status{};
    EXPECT_EQ(::statvfs(at.c_str(), &status), 0);
    EXPECT_EQ(::umount2(at.c_str(), 0), 0);
    return (status.f_flag & ST_RDONLY) == 0;
  };
  EXPECT_FALSE(mounts_writable());
  ASSERT_TRUE((*pool)->set_limit(id, 17 * kMiB));
  EXPECT_TRUE(mounts_writable());
}

TEST_F(BtrfsPoolTest, IsFoundAgainMountedOrNot) {
  const SandboxId id = make_sandbox_id();
  {
    auto pool = open();
    ASSERT_TRUE(pool) << pool.error().message();
    auto upper = (*pool)->create(id, 64 * kMiB);
    write_text(upper->upper_dir + "/file", "kept");
  }
  {
    // The server restarts: the mount is still there.
    auto pool = open();
    ASSERT_TRUE(pool) << pool.error().message();
    EXPECT_EQ(loops_below(dir_.path()), 1);
    EXPECT_EQ(read_text((*pool)->find(id).upper_dir + "/file"), "kept");
  }
  ASSERT_TRUE(unmount_pool(dir_.path()));
  EXPECT_EQ(loops_below(dir_.path()), 0);
  EXPECT_TRUE(unmount_pool(dir_.path()));
  {
    // The machine restarts: only the file is there. The limit is still in force.
    auto pool = open();
    ASSERT_TRUE(pool) << pool.error().message();
    EXPECT_THAT(*(*pool)->list(), ElementsAre(id));
    EXPECT_EQ(read_text((*pool)->find(id).upper_dir + "/file"), "kept");
    EXPECT_EQ(fill((*pool)->find(id).upper_dir + "/big", 128 * kMiB).second, EDQUOT);
  }
}

TEST_F(BtrfsPoolTest, KeepsItsSpaceReserved) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_GE(stat_of(dir_ / "pool.img").st_blocks * 512, 512 * static_cast<int64_t>(kMiB));
  auto space = (*pool)->space();
  ASSERT_TRUE(space);
  EXPECT_EQ(space->total_bytes, 512 * kMiB);
  EXPECT_GT(space->free_bytes, 300 * kMiB);
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, 200 * kMiB);
  EXPECT_EQ(fill(upper->upper_dir + "/big", 100 * kMiB).second, 0);
  EXPECT_LT((*pool)->space()->free_bytes, space->free_bytes - 90 * kMiB);
  // Deleting gives nothing back to the host.
  ASSERT_TRUE((*pool)->remove(id));
  const UniqueFd root(::open((dir_ / "pool").c_str(), O_RDONLY));
  ASSERT_EQ(::syncfs(root.get()), 0);
  EXPECT_GE(stat_of(dir_ / "pool.img").st_blocks * 512, 512 * static_cast<int64_t>(kMiB));
}

TEST_F(BtrfsPoolTest, ClosesThePoolToOtherUsers) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  EXPECT_EQ(stat_of(dir_ / "pool").st_mode & 07777, 0700u);
  EXPECT_EQ(stat_of(dir_ / "pool.img").st_mode & 07777, 0600u);
}

TEST_F(BtrfsPoolTest, RefusesDoublesAndStrangeNames) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  const SandboxId id = make_sandbox_id();
  ASSERT_TRUE((*pool)->create(id, 64 * kMiB));
  auto again = (*pool)->create(id, 64 * kMiB);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code(), Code::kAlreadyExists);
  EXPECT_FALSE((*pool)->create(SandboxId("../escape"), 64 * kMiB));
  EXPECT_FALSE((*pool)->remove(SandboxId("..")));
  EXPECT_FALSE((*pool)->used_bytes(make_sandbox_id()));
}

TEST_F(BtrfsPoolTest, IsNotUnmountedWhileInUse) {
  auto pool = open();
  ASSERT_TRUE(pool) << pool.error().message();
  auto busy = unmount_pool(dir_.path());
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().error_number(), EBUSY);
}

TEST(UpperPool, RefusesAPoolThatIsTooSmallOrTooLarge) {
  TempDir dir;
  auto small = UpperPool::open({.data_dir = dir.path(), .pool_size_bytes = kMiB});
  ASSERT_FALSE(small);
  EXPECT_THAT(small.error().message(), HasSubstr("too small"));
  auto large = UpperPool::open({.data_dir = dir.path(), .pool_size_bytes = 1ull << 50});
  ASSERT_FALSE(large);
  EXPECT_FALSE(path_exists(dir / "pool.img"));
  EXPECT_FALSE(path_exists(dir / "pool.img.new"));
}

TEST(UpperPool, RefusesAnImageThatCannotBeMounted) {
  TempDir dir;
  write_text(dir / "pool.img", std::string(kMiB, 'x'));
  auto pool = UpperPool::open({.data_dir = dir.path()});
  ASSERT_FALSE(pool);
  EXPECT_TRUE(path_exists(dir / "pool.img"));
  EXPECT_EQ(loops_below(dir.path()), 0);
}

TEST(PlainPool, HasNoLimitsButTheSameShape) {
  TempDir dir;
  auto pool = PlainPool::open(dir.path());
  ASSERT_TRUE(pool);
  const SandboxId id = make_sandbox_id();
  auto upper = (*pool)->create(id, kMiB);
  ASSERT_TRUE(upper);
  EXPECT_EQ(fill(upper->upper_dir + "/big", 4 * kMiB).second, 0);
  EXPECT_GE(*(*pool)->used_bytes(id), 4 * kMiB);
  EXPECT_THAT(*(*pool)->list(), ElementsAre(id));
  // Once in use it stays in use: its sandboxes must be found again.
  auto reopened = UpperPool::open({.data_dir = dir.path()});
  ASSERT_TRUE(reopened);
  EXPECT_EQ((*reopened)->kind(), "plain");
  ASSERT_TRUE((*pool)->remove(id));
  EXPECT_FALSE(PlainPool::is_in_use(dir.path()));
}

}  // namespace
}  // namespace alcove::image

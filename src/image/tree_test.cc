// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/tree.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/files.h"
#include "image/testing/temp_dir.h"

namespace alcove::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string xattr_of(const std::string& path, const char* name) {
  char value[256];
  const ssize_t n = ::lgetxattr(path.c_str(), name, value, sizeof value);
  return n < 0 ? std::string() : std::string(value, static_cast<size_t>(n));
}

void set_xattr(const std::string& path, const char* name, const std::string& value) {
  ASSERT_EQ(::lsetxattr(path.c_str(), name, value.data(), value.size(), 0), 0) << path << name;
}

class Recorder final : public TreeVisitor {
 public:
  Result<void> enter(const TreeEntry& entry) override {
    seen.push_back("+" + std::string(entry.path));
    return {};
  }
  Result<void> leave(const TreeEntry& entry) override {
    seen.push_back("-" + std::string(entry.path));
    return {};
  }
  std::vector<std::string> seen;
};

TEST(WalkTree, VisitsInOrderAndDoesNotFollowLinks) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "b/c"));
  write_text(dir / "b/c/file", "x");
  write_text(dir / "a", "x");
  ASSERT_EQ(::symlink("/etc", (dir / "d").c_str()), 0);
  Recorder recorder;
  ASSERT_TRUE(walk_tree(dir.path(), recorder));
  EXPECT_THAT(recorder.seen, ElementsAre("+a", "+b", "+b/c", "+b/c/file", "-b/c", "-b", "+d"));
}

TEST(WalkTree, RefusesASymbolicLinkAsRoot) {
  TempDir dir;
  ASSERT_EQ(::symlink("/etc", (dir / "link").c_str()), 0);
  Recorder recorder;
  EXPECT_FALSE(walk_tree(dir / "link", recorder));
}

// Deeper than PATH_MAX and than the number of open files.
TEST(RemoveTree, RemovesVeryDeepTrees) {
  TempDir dir;
  int fd = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY);
  for (int depth = 0; depth < 3000; ++depth) {
    ASSERT_EQ(::mkdirat(fd, "d", 0755), 0);
    const int next = ::openat(fd, "d", O_RDONLY | O_DIRECTORY);
    ASSERT_GE(next, 0);
    ::close(fd);
    fd = next;
  }
  ::close(fd);
  ASSERT_TRUE(remove_tree(dir / "d"));
  EXPECT_FALSE(path_exists(dir / "d"));
}

TEST(RemoveTree, LeavesTheTargetsOfLinksAlone) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "kept"));
  write_text(dir / "kept/file", "x");
  ASSERT_TRUE(make_directories(dir / "gone"));
  ASSERT_EQ(::symlink((dir / "kept").c_str(), (dir / "gone/link").c_str()), 0);
  ASSERT_TRUE(remove_tree(dir / "gone"));
  EXPECT_FALSE(path_exists(dir / "gone"));
  EXPECT_EQ(read_text(dir / "kept/file"), "x");
  EXPECT_TRUE(remove_tree(dir / "never-was"));
}

TEST(CopyTree, KeepsOwnersModesTimesLinksAndAttributes) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "from/sub", 0711));
  ASSERT_TRUE(make_directories(dir / "to"));
  write_text(dir / "from/sub/file", "content");
  ASSERT_EQ(::chown((dir / "from/sub/file").c_str(), 1000, 1001), 0);
  ASSERT_EQ(::chmod((dir / "from/sub/file").c_str(), 04755), 0);
  set_xattr(dir / "from/sub/file", "user.colour", "blue");
  set_xattr(dir / "from/sub", "trusted.overlay.opaque", "y");
  set_xattr(dir / "from/sub/file", "user.overlay.redirect", "/etc");
  ASSERT_EQ(::link((dir / "from/sub/file").c_str(), (dir / "from/second").c_str()), 0);
  ASSERT_EQ(::symlink("../outside", (dir / "from/sub/link").c_str()), 0);
  ASSERT_EQ(::mknod((dir / "from/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  const timespec times[2] = {{.tv_sec = 1'000'000, .tv_nsec = 5},
                             {.tv_sec = 1'000'000, .tv_nsec = 5}};
  ASSERT_EQ(::utimensat(AT_FDCWD, (dir / "from/sub").c_str(), times, 0), 0);

  std::vector<std::string> notices;
  const auto copied = copy_tree(dir / "from", dir / "to",
                                [&](std::string_view line) { notices.emplace_back(line); });
  ASSERT_TRUE(copied) << copied.error().message();

  const struct stat file = stat_of(dir / "to/sub/file");
  EXPECT_EQ(read_text(dir / "to/sub/file"), "content");
  EXPECT_EQ(file.st_uid, 1000u);
  EXPECT_EQ(file.st_gid, 1001u);
  EXPECT_EQ(file.st_mode & 07777, 04755u);
  EXPECT_EQ(stat_of(dir / "to/second").st_ino, file.st_ino);
  EXPECT_EQ(xattr_of(dir / "to/sub/file", "user.colour"), "blue");
  EXPECT_EQ(xattr_of(dir / "to/sub/file", "user.overlay.redirect"), "");
  EXPECT_EQ(xattr_of(dir / "to/sub", "trusted.overlay.opaque"), "");
  EXPECT_EQ(stat_of(dir / "to/sub").st_mode & 07777, 0711u);
  EXPECT_EQ(stat_of(dir / "to/sub").st_mtim.tv_sec, 1'000'000);
  EXPECT_TRUE(S_ISLNK(stat_of(dir / "to/sub/link").st_mode));
  EXPECT_FALSE(path_exists(dir / "to/null"));
  EXPECT_THAT(notices, ElementsAre(HasSubstr("null")));
}

TEST(CopyTree, RefusesOwnersBeyondALayersRange) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "from"));
  ASSERT_TRUE(make_directories(dir / "to"));
  write_text(dir / "from/file", "x");
  ASSERT_EQ(::chown((dir / "from/file").c_str(), 65536, 0), 0);
  const auto copied = copy_tree(dir / "from", dir / "to", {});
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message(), HasSubstr("file: owner 65536:0"));
}

TEST(SanitizeTree, RemovesDeviceNodes) {
  TempDir dir;
  ASSERT_TRUE(make_directories(dir / "dev"));
  ASSERT_EQ(::mknod((dir / "dev/null").c_str(), S_IFCHR | 0666, makedev(1, 3)), 0);
  ASSERT_EQ(::mkfifo((dir / "dev/fifo").c_str(), 0600), 0);
  ASSERT_TRUE(sanitize_tree(dir.path(), {}));
  EXPECT_FALSE(path_exists(dir / "dev/null"));
  EXPECT_TRUE(path_exists(dir / "dev/fifo"));
}

constexpr uint32_t kBase = 3 * 65536;

// linux/capability.h: struct vfs_ns_cap_data, little-endian; CAP_NET_RAW is bit 13.
std::string capability_v3(uint32_t root_id) {
  const uint32_t words[6] = {0x03000001, 1u << 13, 0, 0, 0, root_id};
  return std::string(reinterpret_cast<const char*>(words), sizeof words);
}
std::string capability_v2() {
  const uint32_t words[5] = {0x02000001, 1u << 13, 0, 0, 0};
  return std::string(reinterpret_cast<const char*>(words), sizeof words);
}

// user::rw-, user:<uid>:r--, group::r--, mask::r--, other::---
std::string acl(uint32_t uid) {
  struct Entry {
    uint16_t tag, perm;
    uint32_t id;
  };
  const Entry entries[] = {{1, 6, ~0u}, {2, 4, uid}, {4, 4, ~0u}, {0x10, 4, ~0u}, {0x20, 0, ~0u}};
  const uint32_t version = 2;
  return std::string(reinterpret_cast<const char*>(&version), 4) +
         std::string(reinterpret_cast<const char*>(entries), sizeof entries);
}

class ShiftOwners : public ::testing::Test {
 protected:
  std::string make_file(const std::string& name, uint32_t uid, uint32_t gid, mode_t mode) {
    const std::string path = dir_ / name;
    write_text(path, "x");
    EXPECT_EQ(::chown(path.c_str(), uid, gid), 0);
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }
  void SetUp() override { ASSERT_EQ(::chown(dir_.path().c_str(), kBase, kBase), 0); }
  TempDir dir_;
};

TEST_F(ShiftOwners, KeepsSetuidBitsCapabilitiesAndAcls) {
  const std::string sudo = make_file("sudo", kBase, kBase + 5, 06755);
  const std::string ping = make_file("ping", kBase, kBase, 0755);
  const std::string shared = make_file("shared", kBase + 1000, kBase + 1000, 0640);
  set_xattr(ping, "security.capability", capability_v3(kBase));
  set_xattr(shared, "system.posix_acl_access", acl(kBase + 33));
  set_xattr(shared, "user.note", "kept");
  ASSERT_EQ(::mkdir((dir_ / "spool").c_str(), 0755), 0);
  ASSERT_EQ(::chown((dir_ / "spool").c_str(), kBase + 8, kBase + 8), 0);
  ASSERT_EQ(::chmod((dir_ / "spool").c_str(), 02775), 0);
  set_xattr(dir_ / "spool", "trusted.overlay.opaque", "y");

  const auto shifted = shift_owners(dir_.path(), kBase);
  ASSERT_TRUE(shifted) << shifted.error().message();
  EXPECT_EQ(stat_of(sudo).st_uid, 0u);
  EXPECT_EQ(stat_of(sudo).st_gid, 5u);
  EXPECT_EQ(stat_of(sudo).st_mode & 07777, 06755u);
  EXPECT_EQ(stat_of(ping).st_uid, 0u);
  EXPECT_EQ(xattr_of(ping, "security.capability"), capability_v2());
  EXPECT_EQ(stat_of(shared).st_uid, 1000u);
  EXPECT_EQ(xattr_of(shared, "system.posix_acl_access"), acl(33));
  EXPECT_EQ(xattr_of(shared, "user.note"), "kept");
  EXPECT_EQ(stat_of(dir_ / "spool").st_gid, 8u);
  EXPECT_EQ(stat_of(dir_ / "spool").st_mode & 07777, 02775u);
  EXPECT_EQ(xattr_of(dir_ / "spool", "trusted.overlay.opaque"), "y");
  EXPECT_EQ(stat_of(dir_.path()).st_uid, 0u);
}

TEST_F(ShiftOwners, ChangesALinkAndNotItsTarget) {
  TempDir other;
  write_text(other / "target", "x");
  ASSERT_EQ(::chown((other / "target").c_str(), kBase + 7, kBase + 7), 0);
  ASSERT_EQ(::symlink((other / "target").c_str(), (dir_ / "link").c_str()), 0);
  ASSERT_EQ(::lchown((dir_ / "link").c_str(), kBase + 1, kBase + 2), 0);
  ASSERT_TRUE(shift_owners(dir_.path(), kBase));
  EXPECT_EQ(stat_of(dir_ / "link").st_uid, 1u);
  EXPECT_EQ(stat_of(dir_ / "link").st_gid, 2u);
  EXPECT_EQ(stat_of(other / "target").st_uid, kBase + 7);
}

TEST_F(ShiftOwners, ShiftsHardLinkedFilesOnce) {
  const std::string first = make_file("first", kBase + 9, kBase + 9, 04755);
  ASSERT_EQ(::link(first.c_str(), (dir_ / "second").c_str()), 0);
  ASSERT_TRUE(shift_owners(dir_.path(), kBase));
  EXPECT_EQ(stat_of(first).st_uid, 9u);
  EXPECT_EQ(stat_of(dir_ / "second").st_uid, 9u);
}

TEST_F(ShiftOwners, KeepsWhiteoutsWhoeverOwnsThem) {
  ASSERT_EQ(::mknod((dir_ / "gone").c_str(), S_IFCHR, 0), 0);
  ASSERT_TRUE(shift_owners(dir_.path(), kBase));
  const struct stat st = stat_of(dir_ / "gone");
  EXPECT_TRUE(S_ISCHR(st.st_mode));
  EXPECT_EQ(st.st_rdev, 0u);
  EXPECT_EQ(st.st_uid, 0u);
}

TEST_F(ShiftOwners, RefusesDevicesAndForeignOwners) {
  ASSERT_EQ(::mknod((dir_ / "disk").c_str(), S_IFBLK | 0600, makedev(8, 0)), 0);
  ASSERT_EQ(::chown((dir_ / "disk").c_str(), kBase, kBase), 0);
  auto shifted = shift_owners(dir_.path(), kBase);
  ASSERT_FALSE(shifted);
  EXPECT_THAT(shifted.error().message(), HasSubstr("disk: device node 8:0"));
  ASSERT_EQ(::unlink((dir_ / "disk").c_str()), 0);
  make_file("foreign", kBase + 65536, kBase, 0644);
  shifted = shift_owners(dir_.path(), kBase);
  ASSERT_FALSE(shifted);
  EXPECT_THAT(shifted.error().message(), HasSubstr("foreign: owner"));
}

}  // namespace
}  // namespace alcove::image

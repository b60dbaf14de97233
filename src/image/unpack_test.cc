// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/unpack.h"

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "image/files.h"
#include "image/testing/temp_dir.h"

namespace alcove::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Writes tar files with whatever names a test wants.
class TarWriter {
 public:
  explicit TarWriter(const std::string& path) : archive_(::archive_write_new()) {
    ::archive_write_set_format_pax(archive_);
    ::archive_write_add_filter_gzip(archive_);
    EXPECT_EQ(::archive_write_open_filename(archive_, path.c_str()), ARCHIVE_OK);
  }
  ~TarWriter() { ::archive_write_free(archive_); }

  struct Item {
    std::string name;
    mode_t type = AE_IFREG;
    mode_t mode = 0644;
    std::string content = {};
    std::string link = {};
    std::string hardlink = {};
    int64_t uid = 0;
    std::string xattr = {};
    time_t mtime = 1'000'000;
  };

  void add(const Item& item) {
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, item.name.c_str());
    ::archive_entry_set_filetype(entry, item.type);
    ::archive_entry_set_perm(entry, item.mode);
    ::archive_entry_set_uid(entry, item.uid);
    ::archive_entry_set_size(entry, static_cast<int64_t>(item.content.size()));
    ::archive_entry_set_mtime(entry, item.mtime, 0);
    if (!item.link.empty()) ::archive_entry_set_symlink(entry, item.link.c_str());
    if (!item.hardlink.empty()) ::archive_entry_set_hardlink(entry, item.hardlink.c_str());
    if (item.type == AE_IFCHR || item.type == AE_IFBLK) ::archive_entry_set_rdevmajor(entry, 1);
    if (!item.xattr.empty()) {
      ::archive_entry_xattr_add_entry(entry, item.xattr.c_str(), "v", 1);
    }
    EXPECT_GE(::archive_write_header(archive_, entry), ARCHIVE_WARN);
    ::archive_write_data(archive_, item.content.data(), item.content.size());
    ::archive_entry_free(entry);
  }

 private:
  archive* archive_;
};

class UnpackTar : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_directories(target()));
    ASSERT_TRUE(make_directories(outside()));
    write_text(outside() + "/file", "untouched");
  }
  std::string target() const { return dir_ / "target"; }
  std::string outside() const { return dir_ / "outside"; }

  Result<void> unpack(const std::vector<TarWriter::Item>& items, UnpackLimits limits = {}) {
    {
      TarWriter writer(dir_ / "a.tar.gz");
      for (const auto& item : items) writer.add(item);
    }
    return unpack_tar(dir_ / "a.tar.gz", target(), limits,
                      [this](std::string_view line) { notices_.emplace_back(line); });
  }
  void expect_outside_untouched() {
    auto names = list_directory(outside());
    ASSERT_TRUE(names);
    EXPECT_THAT(*names, ElementsAre("file"));
    EXPECT_EQ(read_text(outside() + "/file"), "untouched");
    EXPECT_EQ(stat_of(outside() + "/file").st_mode & 07777, 0644u);
  }

  TempDir dir_;
  std::vector<std::string> notices_;
};

TEST_F(UnpackTar, KeepsWhatAnOrdinaryRootHas) {
  const auto done = unpack({
      {.name = "./", .type = AE_IFDIR, .mode = 0755},
      {.name = "./etc/", .type = AE_IFDIR, .mode = 0755},
      {.name = "./etc/motd", .content = "hello"},
      {.name = "./usr/bin/sudo", .mode = 04755, .content = "binary"},
      {.name = "./home", .type = AE_IFDIR, .mode = 0755},
      {.name = "./home/user", .type = AE_IFDIR, .mode = 0750, .uid = 1000},
      {.name = "./link", .type = AE_IFLNK, .link = "/etc/motd"},
      {.name = "./hard", .hardlink = "./etc/motd"},
      {.name = "./fifo", .type = AE_IFIFO},
      {.name = "./n\303\244me", .content = "utf-8"},
  });
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(read_text(target() + "/etc/motd"), "hello");
  EXPECT_EQ(stat_of(target() + "/usr/bin/sudo").st_mode & 07777, 04755u);
  EXPECT_EQ(stat_of(target() + "/home/user").st_uid, 1000u);
  EXPECT_EQ(stat_of(target() + "/home/user").st_mtim.tv_sec, 1'000'000);
  EXPECT_EQ(stat_of(target() + "/etc").st_mtim.tv_sec, 1'000'000);
  EXPECT_TRUE(S_ISLNK(stat_of(target() + "/link").st_mode));
  EXPECT_EQ(stat_of(target() + "/hard").st_ino, stat_of(target() + "/etc/motd").st_ino);
  EXPECT_TRUE(S_ISFIFO(stat_of(target() + "/fifo").st_mode));
  EXPECT_EQ(read_text(target() + "/n\303\244me"), "utf-8");
}

TEST_F(UnpackTar, RefusesNamesThatLeaveTheTarget) {
  auto done = unpack({{.name = "a/../../outside/file", .content = "bad"}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("\"..\" in name"));
  done = unpack({{.name = outside() + "/file", .content = "bad"}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("absolute name"));
  done = unpack({{.name = "x", .hardlink = "../outside/file"}});
  EXPECT_FALSE(done);
  expect_outside_untouched();
}

TEST_F(UnpackTar, ResolvesLinksOnTheWayInsideTheTarget) {
  const auto done = unpack({
      {.name = "bin", .type = AE_IFLNK, .link = "usr/bin"},
      {.name = "usr/bin/sh", .content = "sh"},
      {.name = "bin/ls", .content = "ls"},
      {.name = "absolute", .type = AE_IFLNK, .link = "/usr"},
      {.name = "absolute/share", .content = "share"},
      {.name = "up", .type = AE_IFLNK, .link = "../../../../usr"},
      {.name = "up/lib", .content = "lib"},
  });
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(read_text(target() + "/usr/bin/ls"), "ls");
  EXPECT_EQ(read_text(target() + "/usr/share"), "share");
  EXPECT_EQ(read_text(target() + "/usr/lib"), "lib");
}

TEST_F(UnpackTar, NeverWritesThroughLinksToTheOutside) {
  // The link's text names a directory of the host; inside the target there is none.
  EXPECT_FALSE(unpack({{.name = "door", .type = AE_IFLNK, .link = outside()},
                       {.name = "door/file", .mode = 0777, .content = "bad"}}));
  expect_outside_untouched();
  // A file entry replaces a link of the same name; it does not write through it.
  ASSERT_TRUE(unpack({{.name = "to-file", .type = AE_IFLNK, .link = outside() + "/file"},
                      {.name = "to-file", .mode = 0777, .content = "mine"}}));
  EXPECT_EQ(read_text(target() + "/to-file"), "mine");
  // A directory entry must not change the mode of what a link points at.
  ASSERT_TRUE(unpack({{.name = "to-dir", .type = AE_IFLNK, .link = outside()},
                      {.name = "to-dir", .type = AE_IFDIR, .mode = 0777}}));
  EXPECT_TRUE(S_ISDIR(stat_of(target() + "/to-dir").st_mode));
  // A hard link to a symbolic link is one to the link itself.
  ASSERT_TRUE(unpack({{.name = "soft", .type = AE_IFLNK, .link = outside() + "/file"},
                      {.name = "hard", .hardlink = "soft"}}));
  EXPECT_TRUE(S_ISLNK(stat_of(target() + "/hard").st_mode));
  expect_outside_untouched();
}

TEST_F(UnpackTar, LeavesOutDevicesAndOverlayAttributes) {
  const auto done = unpack({{.name = "null", .type = AE_IFCHR},
                            {.name = "disk", .type = AE_IFBLK},
                            {.name = "d", .type = AE_IFDIR, .xattr = "trusted.overlay.redirect"},
                            {.name = "e", .xattr = "user.overlay.metacopy"},
                            {.name = "f", .xattr = "user.fine"}});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_FALSE(path_exists(target() + "/null"));
  EXPECT_FALSE(path_exists(target() + "/disk"));
  EXPECT_EQ(notices_.size(), 2u);
  char value[8];
  EXPECT_LT(::getxattr((target() + "/d").c_str(), "trusted.overlay.redirect", value, 8), 0);
  EXPECT_LT(::getxattr((target() + "/e").c_str(), "user.overlay.metacopy", value, 8), 0);
  EXPECT_EQ(::getxattr((target() + "/f").c_str(), "user.fine", value, 8), 1);
}

TEST_F(UnpackTar, RefusesForeignOwnersAndTooMuch) {
  auto done = unpack({{.name = "x", .uid = 70000}});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("owner 70000"));
  done = unpack({{.name = "big", .content = std::string(2000, 'x')}}, {.max_bytes = 1000});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kResourceExhausted);
  done = unpack({{.name = "1"}, {.name = "2"}, {.name = "3"}}, {.max_entries = 2});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::kResourceExhausted);
}

TEST_F(UnpackTar, NamesADamagedFile) {
  write_text(dir_ / "junk.tar", "this is not a tar file, whatever its name says");
  const auto done = unpack_tar(dir_ / "junk.tar", target(), {}, {});
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("junk.tar"));
}

}  // namespace
}  // namespace alcove::image

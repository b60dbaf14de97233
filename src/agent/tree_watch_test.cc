// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/tree_watch.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "agent/testing/temp_dir.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

namespace fs = std::filesystem;
using testing::write_text;

std::string text_of(const FilesystemEvent& event) {
  constexpr std::string_view kNames[] = {"?", "CREATE", "WRITE", "REMOVE", "RENAME", "CHMOD"};
  return cat(kNames[static_cast<size_t>(event.type)], " ", event.name);
}

class TreeWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<TreeWatch> open(const std::string& path, WatchOptions options = {}) {
    auto watch = TreeWatch::open(path, options, accounts_);
    EXPECT_TRUE(watch) << watch.error().message();
    return watch ? std::move(*watch) : nullptr;
  }
  std::unique_ptr<TreeWatch> open_recursive() { return open(dir_.path(), {.recursive = true}); }

  // Everything that is there by now.
  static std::vector<FilesystemEvent> take(TreeWatch& watch) {
    std::vector<FilesystemEvent> all;
    pollfd ready{watch.fd(), POLLIN, 0};
    while (watch.has_more() || ::poll(&ready, 1, 0) == 1) {
      auto events = watch.take();
      EXPECT_TRUE(events) << events.error().message();
      if (!events) break;
      std::move(events->begin(), events->end(), std::back_inserter(all));
    }
    return all;
  }
  static std::vector<std::string> texts(TreeWatch& watch) {
    std::vector<std::string> all;
    for (const FilesystemEvent& event : take(watch)) all.push_back(text_of(event));
    return all;
  }
  using Texts = std::vector<std::string>;

  testing::TempDir dir_;
  std::shared_ptr<const Accounts> accounts_ =
      std::make_shared<Accounts>("root:x:0:0::/root:/bin/sh\n", "root:x:0:\n");
};

TEST_F(TreeWatchTest, ReportsWhatHappensToFiles) {
  const auto watch = open(dir_.path());
  write_text(dir_ / "a", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a", "WRITE a"}));
  ASSERT_EQ(::chmod((dir_ / "a").c_str(), 0600), 0);
  EXPECT_EQ(texts(*watch), Texts{"CHMOD a"});
  fs::rename(dir_ / "a", dir_ / "b");
  EXPECT_EQ(texts(*watch), (Texts{"RENAME a", "CREATE b"}));
  fs::remove(dir_ / "b");
  EXPECT_EQ(texts(*watch), Texts{"REMOVE b"});
}

TEST_F(TreeWatchTest, NotRecursiveSeesOneLevel) {
  fs::create_directory(dir_ / "sub");
  const auto watch = open(dir_.path());
  write_text(dir_ / "sub/file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
}

TEST_F(TreeWatchTest, RecursiveSeesDirectoriesThatWereThere) {
  fs::create_directories(dir_ / "a/b");
  const auto watch = open_recursive();
  write_text(dir_ / "a/b/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a/b/file", "WRITE a/b/file"}));
}

TEST_F(TreeWatchTest, RecursiveSeesWhatHappensInANewDirectory) {
  const auto watch = open_recursive();
  fs::create_directory(dir_ / "new");
  EXPECT_EQ(texts(*watch), Texts{"CREATE new"});
  write_text(dir_ / "new/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE new/file", "WRITE new/file"}));
}

TEST_F(TreeWatchTest, TreeThatIsMadeAtOnceIsReportedWhole) {
  const auto watch = open_recursive();
  fs::create_directories(dir_ / "a/b/c");
  write_text(dir_ / "a/1", "x");
  write_text(dir_ / "a/b/2", "x");
  write_text(dir_ / "a/b/c/3", "x");
  const Texts events = texts(*watch);
  for (const char* name : {"a", "a/1", "a/b", "a/b/2", "a/b/c", "a/b/c/3"}) {
    EXPECT_NE(std::find(events.begin(), events.end(), cat("CREATE ", name)), events.end()) << name;
  }
  write_text(dir_ / "a/b/c/3", "y");
  // Truncated and written: the kernel makes one event of two equal ones.
  EXPECT_EQ(texts(*watch), Texts{"WRITE a/b/c/3"});
}

TEST_F(TreeWatchTest, LargeTreeThatAppearsIsReportedInPortions) {
  constexpr size_t kDirectories = 200;
  constexpr size_t kFiles = 499;
  // In memory: on a disk this takes seconds.
  const testing::TempDir watched("/dev/shm");
  const testing::TempDir elsewhere("/dev/shm");
  for (size_t i = 0; i < kDirectories; ++i) {
    const std::string directory = cat(elsewhere.path(), "/tree/", i);
    fs::create_directories(directory);
    for (size_t k = 0; k < kFiles; ++k) {
      ASSERT_EQ(::mknod(cat(directory, "/", k).c_str(), S_IFREG | 0644, 0), 0);
    }
  }
  const auto watch = open(watched.path(), {.recursive = true});
  fs::rename(elsewhere / "tree", watched / "tree");
  write_text(watched / "after", "x");
  std::set<std::string> reported;
  size_t events = 0;
  std::string last;
  do {
    const auto portion = watch->take();
    ASSERT_TRUE(portion) << portion.error().message();
    EXPECT_LE(portion->size(), TreeWatch::kPortion);
    for (const FilesystemEvent& event : *portion) reported.insert(text_of(event));
    events += portion->size();
    if (!portion->empty()) last = text_of(portion->back());
  } while (watch->has_more());
  // Each once; the tree itself, and what came after it.
  EXPECT_EQ(events, 1 + kDirectories * (1 + kFiles) + 2);
  EXPECT_EQ(reported.size(), events);
  EXPECT_EQ(last, "WRITE after");
  // And all of it is watched.
  write_text(watched / "tree/0/new", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE tree/0/new", "WRITE tree/0/new"}));
}

TEST_F(TreeWatchTest, LargeDirectoryThatAppearsIsReportedInPortions) {
  const testing::TempDir watched("/dev/shm");
  const testing::TempDir elsewhere("/dev/shm");
  fs::create_directory(elsewhere / "d");
  constexpr size_t kFiles = 2 * TreeWatch::kPortion;
  for (size_t i = 0; i < kFiles; ++i) {
    ASSERT_EQ(::mknod(cat(elsewhere.path(), "/d/", i).c_str(), S_IFREG | 0644, 0), 0);
  }
  const auto watch = open(watched.path(), {.recursive = true});
  fs::rename(elsewhere / "d", watched / "d");
  std::set<std::string> reported;
  do {
    const auto portion = watch->take();
    ASSERT_TRUE(portion) << portion.error().message();
    EXPECT_LE(portion->size(), TreeWatch::kPortion);
    for (const FilesystemEvent& event : *portion) reported.insert(text_of(event));
  } while (watch->has_more());
  EXPECT_EQ(reported.size(), 1 + kFiles);
}

TEST_F(TreeWatchTest, RenamedDirectoryIsFollowed) {
  fs::create_directories(dir_ / "old/deep");
  const auto watch = open_recursive();
  fs::rename(dir_ / "old", dir_ / "new");
  EXPECT_EQ(texts(*watch), (Texts{"RENAME old", "CREATE new"}));
  write_text(dir_ / "new/deep/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE new/deep/file", "WRITE new/deep/file"}));
}

TEST_F(TreeWatchTest, DirectoryRenamedBeforeItsCreationIsHandledIsFollowed) {
  const auto watch = open_recursive();
  fs::create_directory(dir_ / "a");
  fs::rename(dir_ / "a", dir_ / "b");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a", "RENAME a", "CREATE b"}));
  write_text(dir_ / "b/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE b/file", "WRITE b/file"}));
}

TEST_F(TreeWatchTest, DirectoryThatLeavesTheTreeIsForgotten) {
  const testing::TempDir elsewhere;
  fs::create_directories(dir_ / "a/deep");
  const auto watch = open_recursive();
  fs::rename(dir_ / "a", elsewhere / "a");
  EXPECT_EQ(texts(*watch), Texts{"RENAME a"});
  write_text(elsewhere / "a/deep/file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
  // And is seen again when it comes back, with what it holds.
  fs::rename(elsewhere / "a", dir_ / "a");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a", "CREATE a/deep", "CREATE a/deep/file"}));
}

TEST_F(TreeWatchTest, RemovedDirectoryIsReportedOnce) {
  fs::create_directory(dir_ / "a");
  const auto watch = open_recursive();
  fs::remove(dir_ / "a");
  EXPECT_EQ(texts(*watch), Texts{"REMOVE a"});
  fs::create_directory(dir_ / "a");
  write_text(dir_ / "a/file", "x");
  const Texts events = texts(*watch);
  EXPECT_NE(std::find(events.begin(), events.end(), "CREATE a/file"), events.end());
}

TEST_F(TreeWatchTest, LinkedDirectoriesAreNotFollowed) {
  const testing::TempDir elsewhere;
  fs::create_symlink(elsewhere.path(), dir_ / "link");
  const auto watch = open_recursive();
  write_text(elsewhere / "file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
}

TEST_F(TreeWatchTest, WatchedDirectoryItselfIsADot) {
  fs::create_directory(dir_ / "root");
  const auto watch = open(dir_ / "root");
  ASSERT_EQ(::chmod((dir_ / "root").c_str(), 0700), 0);
  EXPECT_EQ(texts(*watch), Texts{"CHMOD ."});
  fs::remove(dir_ / "root");
  EXPECT_EQ(texts(*watch), Texts{"REMOVE ."});
}

TEST_F(TreeWatchTest, MovedRootIsWatchedNoMore) {
  fs::create_directory(dir_ / "root");
  const auto watch = open(dir_ / "root");
  fs::rename(dir_ / "root", dir_ / "moved");
  EXPECT_EQ(texts(*watch), Texts{"RENAME ."});
  write_text(dir_ / "moved/file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
}

TEST_F(TreeWatchTest, EntriesComeWithWhatIsThere) {
  const auto watch = open(dir_.path(), {.include_entry = true});
  write_text(dir_ / "a", "xyz");
  fs::rename(dir_ / "a", dir_ / "b");
  const auto events = take(*watch);
  ASSERT_EQ(events.size(), 4u);
  // CREATE a and WRITE a: it is gone already.
  EXPECT_FALSE(events[0].entry);
  EXPECT_FALSE(events[1].entry);
  EXPECT_FALSE(events[2].entry);
  ASSERT_TRUE(events[3].entry);
  EXPECT_EQ(events[3].entry->path, dir_ / "b");
  EXPECT_EQ(events[3].entry->size, 3);
}

TEST_F(TreeWatchTest, RenameNeverHasAnEntry) {
  write_text(dir_ / "a", "1");
  const auto watch = open(dir_.path(), {.include_entry = true});
  fs::rename(dir_ / "a", dir_ / "b");
  write_text(dir_ / "a", "2");
  const auto events = take(*watch);
  ASSERT_FALSE(events.empty());
  EXPECT_EQ(text_of(events[0]), "RENAME a");
  EXPECT_FALSE(events[0].entry);
}

TEST_F(TreeWatchTest, RefusesWhatIsNoDirectory) {
  write_text(dir_ / "file", "x");
  EXPECT_EQ(TreeWatch::open(dir_ / "nothing", {}, accounts_).error().code(), Code::kNotFound);
  const auto file = TreeWatch::open(dir_ / "file", {}, accounts_);
  ASSERT_FALSE(file);
  EXPECT_EQ(file.error().code(), Code::kInvalidArgument);
  EXPECT_NE(file.error().message().find("is not a directory"), std::string::npos);
}

// Renames in different directories may run at once, and the kernel's events of them be mixed. Here
// they are taken from the kernel, put into such an order and handed to the watch by a pipe in the
// place of its descriptor.
class MixedMovesTest : public TreeWatchTest {
 protected:
  // `order` has an index into what the kernel reports, for each event in turn.
  Texts take_in_order(TreeWatch& watch, const std::vector<size_t>& order) {
    alignas(inotify_event) char buffer[4096];
    const ssize_t size = ::read(watch.fd(), buffer, sizeof buffer);
    std::vector<std::string_view> events;
    for (ssize_t at = 0; at < size;) {
      const auto* event = reinterpret_cast<const inotify_event*>(buffer + at);
      const size_t length = sizeof(inotify_event) + event->len;
      events.emplace_back(buffer + at, length);
      at += static_cast<ssize_t>(length);
    }
    EXPECT_EQ(events.size(), order.size());
    std::string mixed;
    for (const size_t index : order) mixed += events.at(index);

    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    EXPECT_EQ(::write(ends[1], mixed.data(), mixed.size()), static_cast<ssize_t>(mixed.size()));
    const UniqueFd kernel(::fcntl(watch.fd(), F_DUPFD_CLOEXEC, 0));
    EXPECT_GE(::dup3(ends[0], watch.fd(), O_CLOEXEC), 0);
    Texts all;
    const auto taken = watch.take();
    EXPECT_TRUE(taken) << taken.error().message();
    if (taken) {
      for (const FilesystemEvent& event : *taken) all.push_back(text_of(event));
    }
    EXPECT_GE(::dup3(kernel.get(), watch.fd(), O_CLOEXEC), 0);
    ::close(ends[0]);
    ::close(ends[1]);
    return all;
  }
};

TEST_F(MixedMovesTest, DirectoriesRenamedAtOnceAreFollowed) {
  fs::create_directories(dir_ / "a/old/deep");
  fs::create_directories(dir_ / "b/old/deep");
  const auto watch = open_recursive();
  fs::rename(dir_ / "a/old", dir_ / "a/new");
  fs::rename(dir_ / "b/old", dir_ / "b/new");
  // Each is MOVED_FROM, MOVED_TO, MOVE_SELF.
  EXPECT_EQ(take_in_order(*watch, {0, 3, 1, 4, 2, 5}),
            (Texts{"RENAME a/old", "RENAME b/old", "CREATE a/new", "CREATE b/new"}));
  write_text(dir_ / "a/new/deep/file", "x");
  write_text(dir_ / "b/new/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a/new/deep/file", "WRITE a/new/deep/file",
                                  "CREATE b/new/file", "WRITE b/new/file"}));
}

TEST_F(MixedMovesTest, DirectoriesThatLeaveAtOnceAreForgotten) {
  const testing::TempDir elsewhere;
  fs::create_directories(dir_ / "a/one");
  fs::create_directories(dir_ / "b/two");
  const auto watch = open_recursive();
  fs::rename(dir_ / "a/one", elsewhere / "one");
  fs::rename(dir_ / "b/two", elsewhere / "two");
  EXPECT_EQ(take_in_order(*watch, {0, 2, 1, 3}), (Texts{"RENAME a/one", "RENAME b/two"}));
  write_text(elsewhere / "one/file", "x");
  write_text(elsewhere / "two/file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
}

TEST_F(MixedMovesTest, DirectoryThatLeavesWhileTheOneAboveIsRenamedIsForgotten) {
  const testing::TempDir elsewhere;
  fs::create_directories(dir_ / "a/one");
  const auto watch = open_recursive();
  fs::rename(dir_ / "a/one", elsewhere / "one");
  fs::rename(dir_ / "a", dir_ / "b");
  EXPECT_EQ(take_in_order(*watch, {0, 2, 3, 1, 4}),
            (Texts{"RENAME a/one", "RENAME a", "CREATE b"}));
  write_text(elsewhere / "one/file", "x");
  EXPECT_EQ(texts(*watch), Texts{});
}

TEST_F(TreeWatchTest, DirectoryInThePlaceOfOneThatLeftUnwatchedIsFollowed) {
  const testing::TempDir elsewhere;
  const auto watch = open_recursive();
  // It is gone before it can be watched.
  fs::create_directory(dir_ / "a");
  fs::rename(dir_ / "a", elsewhere / "a");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a", "RENAME a"}));
  fs::create_directory(dir_ / "x");
  EXPECT_EQ(texts(*watch), Texts{"CREATE x"});
  fs::rename(dir_ / "x", dir_ / "a");
  EXPECT_EQ(texts(*watch), (Texts{"RENAME x", "CREATE a"}));
  write_text(dir_ / "a/file", "x");
  EXPECT_EQ(texts(*watch), (Texts{"CREATE a/file", "WRITE a/file"}));
}

TEST_F(TreeWatchTest, LostEventsAreAnError) {
  const auto watch = open(dir_.path());
  const std::string limit = testing::read_text("/proc/sys/fs/inotify/max_queued_events");
  // Two different files in turn, because equal events in a row become one.
  for (int i = 0; i <= std::stoi(limit) / 2 + 1; ++i) {
    for (const char* name : {"a", "b"}) {
      ::close(::open((dir_ / name).c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
      ::chmod((dir_ / name).c_str(), 0644);
    }
  }
  Result<std::vector<FilesystemEvent>> events;
  do {
    events = watch->take();
  } while (events && !events->empty());
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code(), Code::kInternal);
}

TEST(TreeWatch, ATreeDeeperThanAnyPathIsSaidToBe) {
  // In memory: on a disk this takes seconds.
  const testing::TempDir dir("/dev/shm");
  UniqueFd current(::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; i < 25; ++i) {
    const std::string name(200, 'd');
    ASSERT_EQ(::mkdirat(current.get(), name.c_str(), 0755), 0);
    current.reset(::openat(current.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    ASSERT_TRUE(current.valid());
  }
  current.reset();
  const auto watch =
      TreeWatch::open(dir.path(), {.recursive = true}, std::make_shared<Accounts>("", ""));
  ASSERT_FALSE(watch);
  EXPECT_EQ(watch.error().code(), Code::kInternal);
  EXPECT_NE(watch.error().message().find("longer than the kernel takes"), std::string::npos);
  EXPECT_LT(watch.error().message().size(), 400u);
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/layer_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/sha256.h"
#include "image/files.h"
#include "image/testing/temp_dir.h"

namespace alcove::image {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

LayerHash hash_of(const std::string& text) { return LayerHash(sha256_hex(text)); }

std::vector<std::string> stages_in(const TempDir& dir) {
  auto names = list_directory(dir / ".stages");
  return names ? *names : std::vector<std::string>{"unreadable"};
}

TEST(LayerStore, CommitsAStageUnderItsHash) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  ASSERT_TRUE(store);
  EXPECT_EQ(stat_of(dir.path()).st_mode & 07777, 0700u);
  const LayerHash hash = hash_of("one");
  EXPECT_FALSE(store->has(hash));
  auto stage = store->stage();
  ASSERT_TRUE(stage);
  EXPECT_EQ(stat_of(stage->root()).st_mode & 07777, 0755u);
  write_text(stage->root() + "/file", "x");
  write_text(stage->scratch() + "/note", "y");
  ASSERT_TRUE(store->commit(std::move(*stage), hash));
  EXPECT_TRUE(store->has(hash));
  EXPECT_EQ(read_text(store->path(hash) + "/file"), "x");
  EXPECT_FALSE(path_exists(store->path(hash) + "/note"));
  EXPECT_THAT(*store->list(), ElementsAre(hash));
  EXPECT_THAT(stages_in(dir), IsEmpty());

  ASSERT_TRUE(store->remove(hash));
  EXPECT_FALSE(store->has(hash));
  EXPECT_TRUE(store->remove(hash));
  EXPECT_THAT(stages_in(dir), IsEmpty());
}

TEST(LayerStore, ClosesADirectoryThatWasOpenToOthers) {
  const TempDir dir;
  ASSERT_TRUE(make_directories(dir / "layers", 0755));
  ASSERT_TRUE(LayerStore::open(dir / "layers"));
  EXPECT_EQ(stat_of(dir / "layers").st_mode & 07777, 0700u);
}

TEST(LayerStore, KeepsTheFirstOfTwoCommits) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  auto first = store->stage();
  auto second = store->stage();
  write_text(first->root() + "/who", "first");
  write_text(second->root() + "/who", "second");
  ASSERT_TRUE(store->commit(std::move(*first), hash_of("x")));
  ASSERT_TRUE(store->commit(std::move(*second), hash_of("x")));
  EXPECT_EQ(read_text(store->path(hash_of("x")) + "/who"), "first");
  EXPECT_THAT(stages_in(dir), IsEmpty());
}

TEST(LayerStore, DropsAnUncommittedStage) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  {
    auto stage = store->stage();
    write_text(stage->root() + "/file", "x");
    EXPECT_EQ(stages_in(dir).size(), 2u);
  }
  EXPECT_THAT(stages_in(dir), IsEmpty());
}

TEST(LayerStore, SweepsStagesOfTheDeadAndKeepsThoseInUse) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  auto in_use = store->stage();
  ASSERT_TRUE(make_directories(dir / ".stages/dead/root"));
  write_text(dir / ".stages/dead.lock", "");
  ASSERT_TRUE(make_directories(dir / ".stages/lockless"));
  ASSERT_TRUE(LayerStore::open(dir.path()));
  EXPECT_EQ(stages_in(dir).size(), 2u);
  EXPECT_TRUE(path_exists(in_use->root()));
}

TEST(LayerStore, OpensWhileOthersComeAndGo) {
  TempDir dir;
  std::atomic<int> failures = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        auto store = LayerStore::open(dir.path());
        auto stage = store ? store->stage() : fail(store.error());
        if (!stage || !path_exists(stage->root()) || !path_exists(stage->scratch())) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  EXPECT_THAT(stages_in(dir), IsEmpty());
}

TEST(LayerStore, LocksOneHashAtATime) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  auto held = store->lock(hash_of("a"));
  ASSERT_TRUE(held);
  EXPECT_TRUE(store->lock(hash_of("b")));
  std::atomic<bool> released = false;
  bool waited = false;
  std::thread other([&] {
    auto second = store->lock(hash_of("a"));
    waited = second && released;
  });
  released = true;
  held->reset();
  other.join();
  EXPECT_TRUE(waited);
}

TEST(LayerStore, RefusesNamesThatAreNoHashes) {
  TempDir dir;
  auto store = LayerStore::open(dir.path());
  EXPECT_FALSE(store->has(LayerHash(".stages")));
  auto stage = store->stage();
  EXPECT_FALSE(store->commit(std::move(*stage), LayerHash("../evil")));
}

}  // namespace
}  // namespace alcove::image

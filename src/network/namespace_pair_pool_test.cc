// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/namespace_pair_pool.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "base/ids.h"
#include "network/id_blocks.h"

namespace alcove::network {
namespace {

using namespace std::chrono_literals;

using testing::ElementsAre;

class FakeMaker final : public NamespaceMaker {
 public:
  Result<UniqueFd> make_template_namespace(uint32_t block) override {
    if (broken) return fail(Code::kUnavailable, "broken");
    blocks.push_back(block);
    return null_fd();
  }
  Result<std::vector<NamespacePair>> make_pairs(int, const std::vector<IdRange>& ranges) override {
    if (broken) return fail(Code::kUnavailable, "broken");
    std::vector<NamespacePair> pairs;
    for (const IdRange& range : ranges) {
      pairs.push_back({range, null_fd(), null_fd()});
      ++made;
    }
    return pairs;
  }
  static UniqueFd null_fd() { return UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  std::atomic<bool> broken = false;
  std::atomic<int> made = 0;
  std::vector<uint32_t> blocks;
};

class FakeBlocks final : public IdBlocks {
 public:
  Result<uint32_t> acquire() override {
    for (uint32_t block = 1; block <= limit; ++block) {
      if (held.insert(block).second) return block;
    }
    return fail(Code::kResourceExhausted, "no block");
  }
  Result<void> claim(uint32_t block) override {
    held.insert(block);
    return {};
  }
  void release(uint32_t block) override { held.erase(block); }

  uint32_t limit = 127;
  std::set<uint32_t> held;
};

// No prepared pairs: every take() is made at once, so the tests need not wait.
constexpr NamespacePairPool::Options kNoPool = {.pairs_per_key = 0, .idle_keys = 100};

TEST(NamespacePairPool, NeverGivesOneRangeTwiceAndGrowsASecondBlock) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, kNoPool);
  std::set<uint32_t> seen;
  for (int i = 0; i < 600; ++i) {
    const auto pair = pool.take("t");
    ASSERT_TRUE(pair) << pair.error().message();
    EXPECT_TRUE(pair->range.valid());
    EXPECT_TRUE(seen.insert(pair->range.first_id()).second);
  }
  EXPECT_THAT(maker.blocks, ElementsAre(1, 2));
}

TEST(NamespacePairPool, ReusesARangeAfterItCameBack) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, kNoPool);
  const IdRange first = pool.take("t")->range;
  const IdRange second = pool.take("t")->range;
  EXPECT_NE(first, second);
  pool.give_back("t", first);
  EXPECT_EQ(pool.take("t")->range, first);
}

TEST(NamespacePairPool, KeysNeverShareABlock) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, kNoPool);
  EXPECT_NE(pool.take("a")->range.block, pool.take("b")->range.block);
}

TEST(NamespacePairPool, AdoptedRangesAreNotHandedOut) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, kNoPool);
  ASSERT_TRUE(pool.adopt("t", {1, 1}, FakeMaker::null_fd()));
  ASSERT_TRUE(pool.adopt("t", {1, 3}, FakeMaker::null_fd()));
  EXPECT_FALSE(pool.adopt("t", {1, 3}, FakeMaker::null_fd()));
  EXPECT_EQ(pool.take("t")->range, (IdRange{1, 2}));
  EXPECT_EQ(pool.take("t")->range, (IdRange{1, 4}));
  EXPECT_EQ(pool.take("other")->range.block, 2u);
  EXPECT_THAT(maker.blocks, ElementsAre(2));
}

TEST(NamespacePairPool, DropsTheOldestIdleKeyWhenBlocksRunOut) {
  FakeMaker maker;
  FakeBlocks blocks;
  blocks.limit = 2;
  NamespacePairPool pool(maker, blocks, kNoPool);
  const IdRange a = pool.take("a")->range;
  ASSERT_TRUE(pool.take("b"));
  EXPECT_FALSE(pool.take("c"));
  pool.give_back("a", a);
  const auto c = pool.take("c");
  ASSERT_TRUE(c) << c.error().message();
  EXPECT_EQ(c->range.block, a.block);
}

TEST(NamespacePairPool, FailureGivesTheRangeBack) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, kNoPool);
  ASSERT_TRUE(pool.take("t"));
  maker.broken = true;
  EXPECT_FALSE(pool.take("t"));
  maker.broken = false;
  EXPECT_EQ(pool.take("t")->range, (IdRange{1, 2}));
}

TEST(NamespacePairPool, FillsInTheBackground) {
  FakeMaker maker;
  FakeBlocks blocks;
  NamespacePairPool pool(maker, blocks, {.pairs_per_key = 4, .idle_keys = 100});
  pool.warm("t");
  while (pool.ready_count("t") < 4) std::this_thread::yield();
  EXPECT_EQ(maker.made, 4);
  ASSERT_TRUE(pool.take("t"));
  ASSERT_TRUE(pool.take("t"));
  while (pool.ready_count("t") < 4) std::this_thread::yield();
  EXPECT_EQ(maker.made, 6);
}

TEST(IdBlocks, ReadsWhichBlocksAMapTouches) {
  EXPECT_TRUE(blocks_of_map("         0          0 4294967295\n").empty());
  EXPECT_THAT(blocks_of_map("         0      65536      65536\n"), ElementsAre(0));
  EXPECT_THAT(blocks_of_map("0 33619968 65536\n"), ElementsAre(1));
  EXPECT_THAT(blocks_of_map("0 33554432 33554433\n"), ElementsAre(1, 2));
  EXPECT_TRUE(blocks_of_map("nonsense\n").empty());
}

TEST(IdBlocks, TwoServersOfAMachineGetDifferentBlocks) {
  const std::string dir = testing::TempDir() + "alcove-id-blocks-" + random_alphanumeric(6);
  HostIdBlocks one(dir);
  HostIdBlocks two(dir, /*patience=*/10ms);
  const auto first = one.acquire();
  const auto second = two.acquire();
  ASSERT_TRUE(first && second);
  EXPECT_NE(*first, *second);
  EXPECT_FALSE(two.claim(*first));
  one.release(*first);
  EXPECT_TRUE(two.claim(*first));
  std::filesystem::remove_all(dir);
}

TEST(IdBlocks, ClaimWaitsForAServerThatIsDying) {
  const std::string dir = testing::TempDir() + "alcove-id-blocks-" + random_alphanumeric(6);
  HostIdBlocks dying(dir);
  HostIdBlocks next(dir);
  const auto block = dying.acquire();
  ASSERT_TRUE(block);
  std::thread death([&] {
    std::this_thread::sleep_for(50ms);
    dying.release(*block);
  });
  EXPECT_TRUE(next.claim(*block));
  death.join();
  std::filesystem::remove_all(dir);
}

}  // namespace
}  // namespace alcove::network

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a start finds of an earlier server.
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <mutex>
#include <set>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "node/testing/node_fixture.h"

namespace alcove::node::testing {
namespace {

using namespace std::chrono_literals;

TEST_F(LocalNodeTest, AdoptsTheLivingAndClearsTheRest) {
  const WallTime now = clock_.now();
  ASSERT_TRUE(store_.put_sandbox(stored("ialive", now + 1h)));
  ASSERT_TRUE(store_.put_sandbox(stored("iexpired", now - 1s)));
  ASSERT_TRUE(store_.put_sandbox(stored("idead", now + 1h)));
  for (const char* id : {"ialive", "iexpired", "idead", "iorphan"}) {
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
  }
  driver_.adoptable = {"ialive", "iexpired"};
  for (const char* hash : {"old-agent", "agent-hash", "older-agent"}) {
    std::filesystem::create_directory(dir_.path() + "/agents/" + hash);
  }

  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_NE(node_->find(SandboxId("ialive")), nullptr);
  EXPECT_EQ(node_->list().size(), 1u);
  EXPECT_EQ(store_.list_sandboxes()->size(), 1u);
  EXPECT_EQ(uppers_.list()->size(), 1u);
  EXPECT_EQ(driver_.swept_keep, std::vector<SandboxId>{SandboxId("ialive")});
  const auto last_words = [&](const char* id) {
    return decode_log(store_.find_ended_sandbox(SandboxId(id)).value()->log)->back().message;
  };
  EXPECT_EQ(last_words("iexpired"), "sandbox ended: its timeout was reached");
  EXPECT_EQ(last_words("idead"), "sandbox ended while the server was down");
  EXPECT_TRUE(driver_.state->destroyed.contains("iexpired"));
  EXPECT_TRUE(std::filesystem::exists(dir_.path() + "/agents/old-agent"));
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/agents/older-agent"));
}

TEST_F(LocalNodeTest, ExpiredOnesThatHangDoNotHoldUpAStart) {
  const WallTime now = clock_.now();
  for (const char* id : {"ifirst", "isecond", "ialive"}) {
    ASSERT_TRUE(store_.put_sandbox(stored(id, id == std::string_view("ialive") ? now + 1h : now)));
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
    driver_.adoptable.insert(id);
  }
  driver_.state->hangs = true;
  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_EQ(node_->list().size(), 1u);
  EXPECT_EQ(store_.list_sandboxes()->size(), 1u);
  // They have their files until they end, and no sweep waits for them.
  EXPECT_EQ(uppers_.list()->size(), 3u);
  EXPECT_EQ(driver_.swept_keep.size(), 3u);
  EXPECT_TRUE(driver_.state->destroyed.empty());
  EXPECT_EQ(driver_.state->early_destroys, 0);

  loops_.start();
  EXPECT_TRUE(eventually([&] { return uppers_.list()->size() == 1; }, 20s));
  const std::lock_guard lock(driver_.state->mutex);
  EXPECT_EQ(driver_.state->destroyed, (std::set<std::string>{"ifirst", "isecond"}));
  EXPECT_EQ(driver_.state->early_destroys, 0);
}

TEST_F(LocalNodeTest, WhatCannotBeTakenOverNowIsKeptAndTakenOverLater) {
  const WallTime now = clock_.now();
  for (const char* id : {"iunclear", "iexpiring", "ialive"}) {
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
    ASSERT_TRUE(store_.put_sandbox(stored(id, now + 1h)));
  }
  ASSERT_TRUE(store_.put_sandbox(stored("iexpiring", now + 1s)));
  driver_.adoptable = {"iunclear", "iexpiring", "ialive"};
  driver_.unclear = {"iunclear", "iexpiring"};
  for (const char* hash : {"old-agent", "agent-hash"}) {
    std::filesystem::create_directories(dir_.path() + "/agents/" + hash);
  }

  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_EQ(node_->list().size(), 1u);
  EXPECT_EQ(store_.list_sandboxes()->size(), 3u);
  EXPECT_EQ(uppers_.list()->size(), 3u);
  EXPECT_EQ(driver_.swept_keep.size(), 3u);
  EXPECT_TRUE(std::filesystem::exists(dir_.path() + "/agents/old-agent"));

  loops_.start();
  {
    const std::lock_guard lock(driver_.state->mutex);
    driver_.unclear.clear();
  }
  EXPECT_TRUE(eventually([&] { return node_->find(SandboxId("iunclear")) != nullptr; }, 10s));
  EXPECT_TRUE(eventually([&] { return uppers_.list()->size() == 2; }));
  EXPECT_EQ(store_.list_sandboxes()->size(), 2u);
  EXPECT_EQ(node_->find(SandboxId("iexpiring")), nullptr);
}

TEST_F(LocalNodeTest, AStoreThatFailsDoesNotStopAStart) {
  const WallTime now = clock_.now();
  for (const auto& [id, end] :
       {std::pair("ialive", now + 1h), {"iexpired", now - 1s}, {"idead", now + 1h}}) {
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
    store::Sandbox record = stored(id, end);
    record.team = TeamId("team");
    ASSERT_TRUE(store_.put_sandbox(record));
  }
  driver_.adoptable = {"ialive", "iexpired"};
  std::atomic<bool> broken{true};
  store_.before_call = [&](std::string_view call) -> Result<void> {
    if (broken && call == "end_sandbox") return fail(Code::kInternal, "disk on fire");
    return {};
  };

  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_NE(node_->find(SandboxId("ialive")), nullptr);
  EXPECT_FALSE(node_->find_unclear(SandboxId("ialive")));
  EXPECT_EQ(node_->list().size(), 1u);
  EXPECT_EQ(node_->find_unclear(SandboxId("idead")), TeamId("team"));
  EXPECT_EQ(node_->find_unclear(SandboxId("iexpired")), TeamId("team"));
  EXPECT_FALSE(node_->find_unclear(SandboxId("iunknown")));

  driver_.adoptable = {"ialive"};
  loops_.start();
  broken = false;
  EXPECT_TRUE(eventually([&] { return !node_->find_unclear(SandboxId("idead")); }, 10s));
  EXPECT_FALSE(node_->find_unclear(SandboxId("iexpired")));
  EXPECT_EQ(store_.list_sandboxes()->size(), 1u);
  // And what it left is cleared away, but not what others have.
  EXPECT_TRUE(eventually([&] { return uppers_.list()->size() == 1; }, 10s));
  const std::lock_guard lock(driver_.state->mutex);
  EXPECT_EQ(driver_.swept_again, (std::set{SandboxId("idead"), SandboxId("iexpired")}));
}

TEST_F(LocalNodeTest, AStoreThatIsSlowToFailIsAskedForOneEndAtATime) {
  const WallTime now = clock_.now();
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(store_.put_sandbox(stored(cat("idead", i).c_str(), now + 1h)));
    ASSERT_TRUE(store_.put_sandbox(stored(cat("iexpired", i).c_str(), now - 1s)));
    driver_.adoptable.insert(cat("iexpired", i));
  }
  std::atomic<int> asked{0};
  store_.before_call = [&](std::string_view call) -> Result<void> {
    if (call != "end_sandbox") return {};
    ++asked;
    return fail(Code::kInternal, "locked");
  };
  ASSERT_TRUE(node_->adopt_existing());
  // Of one that is dead and of one that has expired; each with its log and without.
  EXPECT_EQ(asked, 4);
  EXPECT_TRUE(node_->find_unclear(SandboxId("idead4")));
  EXPECT_TRUE(node_->find_unclear(SandboxId("iexpired4")));
}

TEST_F(LocalNodeTest, WhatCouldNotBeClearedAwayAtAStartIsTriedAgain) {
  for (const char* id : {"iorphan", "iother"}) ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
  driver_.fail_sweep = true;
  uppers_.failing_removals_ = 1;
  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_EQ(uppers_.list()->size(), 1u);
  loops_.start();
  // Sandboxes that came later are not in the way.
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  driver_.fail_sweep = false;
  EXPECT_TRUE(eventually(
      [&] {
        const std::lock_guard lock(driver_.state->mutex);
        return driver_.sweeps_done > 0;
      },
      10s));
  EXPECT_EQ(*uppers_.list(), std::vector{(*made)->record().id});
}

TEST_F(LocalNodeTest, EndAllEndsAlsoWhatWasNotTakenOver) {
  for (const char* id : {"iunclear", "ialive"}) {
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
    ASSERT_TRUE(store_.put_sandbox(stored(id, clock_.now() + 1h)));
  }
  driver_.adoptable = {"ialive"};
  driver_.unclear = {"iunclear"};
  ASSERT_TRUE(node_->adopt_existing());
  node_->end_all();
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(driver_.swept_keep.empty());
  EXPECT_TRUE(store_.list_sandboxes()->empty());
  EXPECT_TRUE(node_->list().empty());
}

TEST_F(LocalNodeTest, AdoptsTheLivingAlthoughTheDeadDoNotGo) {
  ASSERT_TRUE(store_.put_sandbox(stored("ialive", clock_.now() + 1h)));
  driver_.adoptable = {"ialive"};
  driver_.fail_sweep = true;
  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_NE(node_->find(SandboxId("ialive")), nullptr);
}

}  // namespace
}  // namespace alcove::node::testing

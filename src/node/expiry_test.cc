// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// When sandboxes end.
#include <gtest/gtest.h>

#include <atomic>
#include <string_view>
#include <thread>

#include "node/testing/node_fixture.h"

namespace alcove::node::testing {
namespace {

using namespace std::chrono_literals;

TEST_F(LocalNodeTest, ExpiresAtItsEnd) {
  loops_.start();
  const auto made = wait(node_->create(request(1s)));
  ASSERT_TRUE(made);
  EXPECT_TRUE(eventually([&] { return !(*made)->running(); }));
  EXPECT_GE(clock_.now(), (*made)->end_at());
  EXPECT_TRUE(nothing_left());
}

TEST_F(LocalNodeTest, SetEndMovesBothWaysAndExtendOnlyForward) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  const SandboxId id = (*made)->record().id;
  const WallTime before = (*made)->end_at();
  EXPECT_EQ(*wait(node_->extend_end(id, before - 10s)), before);
  EXPECT_EQ((*made)->end_at(), before);
  EXPECT_EQ(*wait(node_->extend_end(id, before + 10s)), before + 10s);
  EXPECT_EQ(store_.list_sandboxes()->front().end_at, before + 10s);
  ASSERT_TRUE(wait(node_->set_end(id, clock_.now())));
  EXPECT_TRUE(eventually([&] { return !(*made)->running(); }));
  EXPECT_EQ(wait(node_->set_end(id, before)).error().code(), Code::kNotFound);
}

TEST_F(LocalNodeTest, MoreTimeThatComesInTheLastMomentCounts) {
  std::atomic<bool> slow{false};
  store_.before_call = [&](std::string_view call) -> Result<void> {
    // Its time is over before that is durable.
    if (call == "set_sandbox_end" && slow) std::this_thread::sleep_for(1500ms);
    return {};
  };
  loops_.start();
  const auto made = wait(node_->create(request(1s)));
  ASSERT_TRUE(made);
  const SandboxId id = (*made)->record().id;
  slow = true;
  ASSERT_TRUE(wait(node_->set_end(id, clock_.now() + 300s)));
  std::this_thread::sleep_for(200ms);
  EXPECT_TRUE((*made)->running());
  EXPECT_NE(node_->find(id), nullptr);
  EXPECT_EQ(store_.list_sandboxes()->size(), 1u);
}

TEST_F(LocalNodeTest, MoreTimeThatCouldNotBeStoredIsNotGiven) {
  store_.before_call = [&](std::string_view call) -> Result<void> {
    if (call != "set_sandbox_end") return {};
    std::this_thread::sleep_for(1500ms);
    return fail(Code::kInternal, "disk on fire");
  };
  loops_.start();
  const auto made = wait(node_->create(request(1s)));
  ASSERT_TRUE(made);
  EXPECT_FALSE(wait(node_->set_end((*made)->record().id, clock_.now() + 300s)));
  EXPECT_TRUE(eventually([&] { return !(*made)->running(); }));
}

TEST_F(LocalNodeTest, AClockThatWasSetWhileNoServerRanMovesNoEnd) {
  ASSERT_TRUE(node_->adopt_existing());  // an earlier server, which notes the clock
  const WallTime begin = clock_.now();
  const auto end_of = [&](const char* id) {
    const auto records = store_.list_sandboxes();
    for (const store::Sandbox& record : *records) {
      if (record.id.str() == id) return record.end_at - clock_.now();
    }
    return WallTime::duration::min();
  };
  for (const auto step : {3600s, -7200s}) {
    ASSERT_TRUE(store_.put_sandbox(stored("ibrief", clock_.now() + 100s)));
    ASSERT_TRUE(store_.put_sandbox(stored("iover", clock_.now() - 1s)));
    driver_.adoptable = {"ibrief", "iover"};
    clock_.set_ahead((clock_.now() - begin > 1800s ? 3600s : 0s) + step);
    make_node();
    ASSERT_TRUE(node_->adopt_existing());
    EXPECT_NE(node_->find(SandboxId("ibrief")), nullptr) << step.count();
    EXPECT_EQ(node_->find(SandboxId("iover")), nullptr) << step.count();
    EXPECT_GT(end_of("ibrief"), 90s);
    EXPECT_LE(end_of("ibrief"), 100s);
    // It is a step once only.
    make_node();
    ASSERT_TRUE(node_->adopt_existing());
    EXPECT_LE(end_of("ibrief"), 100s);
    EXPECT_GT(end_of("ibrief"), 90s);
  }
}

TEST_F(LocalNodeTest, AClockThatIsSetNeitherEndsNorKeepsSandboxes) {
  ASSERT_TRUE(node_->adopt_existing());
  loops_.start();
  const auto lasting = wait(node_->create(request(300s)));
  const auto brief = wait(node_->create(request(4s)));
  ASSERT_TRUE(lasting && brief);
  const auto begin = std::chrono::steady_clock::now();
  const auto is_right = [&] {
    const auto left = (*lasting)->end_at() - clock_.now();
    return left > 200s && left <= 300s && store_.list_sandboxes()->front().end_at > clock_.now() &&
           store_.list_sandboxes()->front().end_at <= clock_.now() + 300s;
  };
  clock_.set_ahead(3600s);
  EXPECT_TRUE(eventually(is_right));
  EXPECT_TRUE((*brief)->running() || std::chrono::steady_clock::now() - begin > 3900ms);
  clock_.set_ahead(-3600s);
  EXPECT_TRUE(eventually(is_right));
  EXPECT_TRUE(eventually([&] { return !(*brief)->running(); }));
  EXPECT_GT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_TRUE((*lasting)->running());

  // More time is more than is left, whatever the clock said when the end was set.
  clock_.set_ahead(-7200s);
  const WallTime later = clock_.now() + 600s;
  EXPECT_EQ(*wait(node_->extend_end((*lasting)->record().id, later)), later);
}

}  // namespace
}  // namespace alcove::node::testing

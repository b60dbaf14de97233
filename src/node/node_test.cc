// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <string_view>

#include <boost/asio/post.hpp>

#include "base/strings.h"
#include "base/time_format.h"
#include "node/testing/node_fixture.h"

namespace alcove::node::testing {
namespace {

using namespace std::chrono_literals;

TEST_F(LocalNodeTest, CreateIsDurableAndFindable) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made) << made.error().message();
  const store::Sandbox& record = (*made)->record();
  EXPECT_EQ(node_->find(record.id), *made);
  ASSERT_EQ(store_.list_sandboxes()->size(), 1u);
  EXPECT_EQ(store_.list_sandboxes()->front().id, record.id);
  EXPECT_EQ(record.end_at - record.started_at, 300s);
  EXPECT_EQ(record.envd_token.size(), 64u);
  EXPECT_TRUE(record.traffic_token.empty());
}

TEST_F(LocalNodeTest, InternetAccessIsOnUnlessTurnedOff) {
  loops_.start();
  using Reach = network::EgressPolicy::Reach;
  for (const auto& [allowed, reach] : {std::pair(std::optional<bool>(), Reach::kInternet),
                                       {true, Reach::kInternet},
                                       {false, Reach::kNone}}) {
    CreateRequest create = request();
    create.allow_internet_access = allowed;
    const auto made = wait(node_->create(create));
    ASSERT_TRUE(made) << made.error().message();
    const std::lock_guard lock(driver_.state->mutex);
    EXPECT_EQ(driver_.state->egress.at((*made)->record().id.str()).reach, reach);
  }
}

TEST_F(LocalNodeTest, FailedBootLeavesNothing) {
  loops_.start();
  driver_.fail_boot = true;
  EXPECT_FALSE(wait(node_->create(request())));
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(store_.list_sandboxes()->empty());
}

TEST_F(LocalNodeTest, AShortageInABootIsNoFault) {
  loops_.start();
  driver_.fail_boot = true;
  EXPECT_EQ(wait(node_->create(request())).error().code(), Code::kInternal);
  driver_.boot_failure = Code::kResourceExhausted;
  EXPECT_EQ(wait(node_->create(request())).error().code(), Code::kUnavailable);
  // A peer that is away may have been at work.
  driver_.boot_failure = Code::kUnavailable;
  EXPECT_EQ(wait(node_->create(request())).error().code(), Code::kInternal);
  EXPECT_TRUE(nothing_left());
}

TEST_F(LocalNodeTest, RefusingAgentLeavesNothing) {
  agent_status_ = 500;
  loops_.start();
  EXPECT_FALSE(wait(node_->create(request())));
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(store_.list_sandboxes()->empty());
}

TEST_F(LocalNodeTest, FailedRecordLeavesNothing) {
  store_.before_call = [](std::string_view call) -> Result<void> {
    if (call == "put_sandbox") return fail(Code::kInternal, "disk on fire");
    return {};
  };
  loops_.start();
  EXPECT_FALSE(wait(node_->create(request())));
  EXPECT_TRUE(nothing_left());
  EXPECT_TRUE(node_->list().empty());
}

TEST_F(LocalNodeTest, NearlyFullPoolRefusesCreates) {
  uppers_.free_ = 4;
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kUnavailable);
}

TEST_F(LocalNodeTest, NoSandboxMayTakeMoreThanHalfOfWhatIsFree) {
  loops_.start();
  ASSERT_TRUE(wait(node_->create(request())));
  EXPECT_EQ(uppers_.last_limit_, 25u);
}

TEST_F(LocalNodeTest, KillIsDurableTellsEveryoneAndCleansUp) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  int told = 0;
  (*made)->on_end([&] { ++told; });
  const uint64_t forgotten = (*made)->on_end([&] { told += 100; });
  (*made)->forget_end(forgotten);
  const SandboxId id = (*made)->record().id;
  EXPECT_TRUE(*wait(node_->kill(id)));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE((*made)->running());
  EXPECT_FALSE((*made)->connect(80, sandbox::Machine::Family::kV4));
  EXPECT_EQ(node_->find(id), nullptr);
  EXPECT_TRUE(store_.list_sandboxes()->empty());
  EXPECT_TRUE(nothing_left());
  EXPECT_FALSE(*wait(node_->kill(id)));
  (*made)->on_end([&] { ++told; });
  EXPECT_EQ(told, 2);
}

TEST_F(LocalNodeTest, WhatIsLeftOfAKilledOneIsRemovedLater) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  {
    const std::lock_guard lock(driver_.state->mutex);
    driver_.state->failing_destroys = 2;
  }
  const SandboxId id = (*made)->record().id;
  EXPECT_TRUE(*wait(node_->kill(id)));
  EXPECT_TRUE(eventually(
      [&] {
        const std::lock_guard lock(driver_.state->mutex);
        return driver_.state->destroyed.contains(id.str());
      },
      10s));
}

TEST_F(LocalNodeTest, WhatHangsAtItsEndHoldsUpNobody) {
  loops_.start();
  std::vector<SandboxId> hung;
  // More than the pool has threads.
  for (int i = 0; i < 4; ++i) {
    const auto made = wait(node_->create(request()));
    ASSERT_TRUE(made);
    hung.push_back((*made)->record().id);
  }
  {
    const std::lock_guard lock(driver_.state->mutex);
    driver_.state->hangs = true;
  }
  for (const SandboxId& id : hung) EXPECT_TRUE(*wait(node_->kill(id)));
  EXPECT_TRUE(wait(node_->create(request())));
  EXPECT_TRUE(eventually(
      [&] {
        const std::lock_guard lock(driver_.state->mutex);
        return driver_.state->destroyed.size() == hung.size();
      },
      20s));
  EXPECT_EQ(driver_.state->early_destroys, 0);
  EXPECT_TRUE(eventually([&] { return uppers_.list()->size() == 1; }));
}

TEST_F(LocalNodeTest, DeathOfTheFirstProcessEndsIt) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  eventfd_write(driver_.state->exit_fds[(*made)->record().id.str()], 1);
  EXPECT_TRUE(eventually([&] { return node_->list().empty(); }));
  EXPECT_TRUE(eventually([&] { return store_.list_sandboxes()->empty(); }));
}

TEST_F(LocalNodeTest, OnABusyLoopTheEndOfOneIsNotTakenForThatOfTheNext) {
  net::EventLoops busy(1);
  make_node_on(busy.loop(0));
  loops_.start();
  busy.start();
  const auto first = wait(node_->create(request()));
  ASSERT_TRUE(first);
  std::promise<void> watched;
  std::promise<void> work;
  boost::asio::post(busy.loop(0), [&] {
    watched.set_value();
    work.get_future().wait();
  });
  watched.get_future().wait();
  EXPECT_TRUE(*wait(node_->kill((*first)->record().id)));
  const auto second = wait(node_->create(request()));
  ASSERT_TRUE(second);
  work.set_value();
  EXPECT_FALSE(eventually([&] { return !(*second)->running(); }, 200ms));
  // It is still watched.
  eventfd_write(driver_.state->exit_fds[(*second)->record().id.str()], 1);
  EXPECT_TRUE(eventually([&] { return !(*second)->running(); }));
  busy.stop();
  make_node();
}

TEST_F(LocalNodeTest, BootsNothingOnceItIsStopped) {
  loops_.start();
  node_->stop();
  EXPECT_FALSE(wait(node_->create(request())));
  EXPECT_TRUE(uppers_.list()->empty());
}

std::vector<std::string> messages(const Log& log) {
  std::vector<std::string> all;
  for (const LogEntry& entry : log) all.push_back(entry.message);
  return all;
}

constexpr const char* kJournal =
    R"({"lines":[{"time":1,"pid":7,"command":"sleep 1"},{"time":9000000000000000000,"pid":7,"status":0}]})";

TEST_F(LocalNodeTest, LogHasLifecycleAndProcessesAlsoAfterTheEnd) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  const SandboxId id = (*made)->record().id;
  journal_ = kJournal;
  ASSERT_TRUE(wait(node_->set_end(id, (*made)->end_at() + 10s)));
  const std::string end = format_rfc3339((*made)->end_at());
  const auto alive = wait(node_->read_log(id, TeamId("team")));
  ASSERT_TRUE(alive && *alive);
  // The agent's times are held to the life of the sandbox.
  EXPECT_EQ(messages(**alive),
            (std::vector<std::string>{
                "sandbox created from template base", "process 7 started: sleep 1",
                "timeout set: the sandbox ends at " + end, "process 7 ended with exit code 0"}));
  EXPECT_EQ((**alive)[1].time, (*made)->record().started_at);
  EXPECT_LE((**alive)[3].time, clock_.now());
  EXPECT_EQ(last_control_, TokenMaker("seed").control_token(id));
  EXPECT_FALSE(*wait(node_->read_log(id, TeamId("others"))));

  ASSERT_TRUE(*wait(node_->kill(id)));
  journal_.clear();
  const auto dead = wait(node_->read_log(id, TeamId("team")));
  ASSERT_TRUE(dead && *dead);
  ASSERT_EQ((*dead)->size(), 5u);
  EXPECT_EQ((*dead)->back().message, "sandbox killed by request");
  EXPECT_FALSE(*wait(node_->read_log(id, TeamId("others"))));
  EXPECT_FALSE(*wait(node_->read_log(SandboxId("iunknown"), TeamId("team"))));
}

TEST_F(LocalNodeTest, AgentsWithoutAJournalLeaveTheLifecycle) {
  loops_.start();
  for (const char* answer : {"", "nonsense", R"({"lines":[{"pid":"x"}]})"}) {
    journal_ = answer;
    const auto made = wait(node_->create(request()));
    ASSERT_TRUE(made);
    const SandboxId id = (*made)->record().id;
    EXPECT_EQ(wait(node_->read_log(id, TeamId("team"))).value()->size(), 1u) << answer;
    ASSERT_TRUE(*wait(node_->kill(id)));
    EXPECT_EQ(wait(node_->read_log(id, TeamId("team"))).value()->size(), 2u) << answer;
  }
}

TEST_F(LocalNodeTest, LogsOfWhatEndsAtOrAfterAStartHaveTheirProcessesToo) {
  const WallTime now = clock_.now();
  ASSERT_TRUE(store_.put_sandbox(stored("iexpired", now - 1s)));
  ASSERT_TRUE(store_.put_sandbox(stored("ialive", now + 1h)));
  driver_.adoptable = {"iexpired", "ialive"};
  journal_ = kJournal;
  loops_.start();  // the agent's; a real start adopts before it
  ASSERT_TRUE(node_->adopt_existing());
  node_->end_all();
  for (const char* id : {"iexpired", "ialive"}) {
    const auto ended = store_.find_ended_sandbox(SandboxId(id));
    ASSERT_TRUE(ended && *ended) << id;
    const auto lines = messages(decode_log((*ended)->log).value());
    EXPECT_NE(std::ranges::find(lines, "process 7 started: sleep 1"), lines.end()) << id;
  }
}

Task<void> send_nothing(http::Exchange& exchange);

TEST_F(LocalNodeTest, AgentsThatHangDoNotHoldUpAStart) {
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(store_.put_sandbox(stored(cat("iexpired", i).c_str(), clock_.now() - 1s)));
    driver_.adoptable.insert(cat("iexpired", i));
  }
  on_journal_ = send_nothing;
  loops_.start();
  const auto begin = std::chrono::steady_clock::now();
  ASSERT_TRUE(node_->adopt_existing());
  // All at once, not one after the other.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 3s);
  EXPECT_TRUE(store_.list_sandboxes()->empty());
}

Task<void> send_nothing(http::Exchange& exchange) {
  (void)co_await exchange.start({.status = 200, .headers = {}}, std::nullopt);
  co_await exchange.wait_disconnect();
}

Task<void> send_without_end(http::Exchange& exchange) {
  (void)co_await exchange.start({.status = 200, .headers = {}}, std::nullopt);
  const std::string junk(65536, ' ');
  while (co_await exchange.write(junk)) {
  }
}

TEST_F(LocalNodeTest, AnAgentThatHangsOrFloodsDoesNotHoldUpAKill) {
  loops_.start();
  for (const bool floods : {false, true}) {
    on_journal_ = floods ? send_without_end : send_nothing;
    const auto made = wait(node_->create(request()));
    ASSERT_TRUE(made);
    const auto begin = std::chrono::steady_clock::now();
    ASSERT_TRUE(*wait(node_->kill((*made)->record().id)));
    EXPECT_LT(std::chrono::steady_clock::now() - begin, 5s);
    EXPECT_EQ(wait(node_->read_log((*made)->record().id, TeamId("team"))).value()->size(), 2u);
  }
}

TEST_F(LocalNodeTest, AnEndDoesNotFailForItsLog) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  int failures = 1;
  store_.before_call = [&](std::string_view call) -> Result<void> {
    if (call == "end_sandbox" && failures-- > 0) return fail(Code::kInternal, "disk full");
    return {};
  };
  EXPECT_TRUE(*wait(node_->kill((*made)->record().id)));
  EXPECT_TRUE(store_.list_sandboxes()->empty());
  EXPECT_TRUE(wait(node_->read_log((*made)->record().id, TeamId("team"))).value()->empty());
}

TEST_F(LocalNodeTest, OldLogsAreForgotten) {
  ASSERT_TRUE(store_.end_sandbox({.id = SandboxId("iold"),
                                  .team = TeamId("team"),
                                  .ended_at = clock_.now() - 8 * 24h,
                                  .log = "[]"}));
  loops_.start();
  EXPECT_FALSE(*wait(node_->read_log(SandboxId("iold"), TeamId("team"))));
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  ASSERT_TRUE(*wait(node_->kill((*made)->record().id)));
  EXPECT_TRUE(eventually([&] { return !store_.find_ended_sandbox(SandboxId("iold")).value(); }));
}

TEST(BuildImage, SurvivesJson) {
  BuildImage image;
  image.layers = {"/a", "/b"};
  image.limits.pids = 7;
  image.default_user = "user";
  image.env_vars = {{"A", "\"quoted\""}};
  image.interpreter = true;
  const auto decoded = decode_build_image(encode_build_image(image));
  ASSERT_TRUE(decoded);
  EXPECT_EQ(decoded->layers, image.layers);
  EXPECT_EQ(decoded->limits.pids, 7u);
  EXPECT_EQ(decoded->env_vars, image.env_vars);
  EXPECT_TRUE(decoded->interpreter);
  for (const char* bad : {"", "[]", "{}", R"({"layers":3})"}) EXPECT_FALSE(decode_build_image(bad));
}

TEST(TokenMaker, IsStablePerIdAndDiffersByPurposeAndSeed) {
  const TokenMaker maker("seed");
  const SandboxId id("iabc");
  EXPECT_EQ(maker.agent_token(id), TokenMaker("seed").agent_token(id));
  EXPECT_NE(maker.agent_token(id), maker.traffic_token(id));
  EXPECT_NE(maker.agent_token(id), TokenMaker("other").agent_token(id));
  EXPECT_NE(maker.agent_token(id), maker.agent_token(SandboxId("iabd")));
}

TEST(AgentStore, KeepsAProgramByItsContent) {
  const image::TempDir dir;
  AgentStore store(dir.path() + "/agents");
  const auto hash = store.add("/proc/self/exe");
  ASSERT_TRUE(hash) << hash.error().message();
  EXPECT_EQ(*store.add("/proc/self/exe"), *hash);
  EXPECT_EQ(std::filesystem::status(store.path(*hash)).permissions(),
            static_cast<std::filesystem::perms>(0755));
  EXPECT_FALSE(store.add(dir.path() + "/none"));
}

}  // namespace
}  // namespace alcove::node::testing

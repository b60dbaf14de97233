// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <filesystem>
#include <future>
#include <optional>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "base/strings.h"
#include "base/time_format.h"
#include "http/server.h"
#include "image/testing/temp_dir.h"
#include "net/event_loops.h"
#include "node/local_node.h"
#include "node/testing/fake_driver.h"
#include "store/testing/memory_store.h"

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

// The system's clock, which somebody may set.
class SetClock final : public Clock {
 public:
  WallTime now() const override { return system_.now() + std::chrono::seconds(ahead_.load()); }
  void set_ahead(std::chrono::seconds ahead) { ahead_ = ahead.count(); }

 private:
  SystemClock system_;
  std::atomic<int64_t> ahead_{0};
};

// A pool without disks: remembers who has directories.
class FakeUppers final : public image::UpperPool {
 public:
  std::string kind() const override { return "fake"; }
  Result<image::Upper> create(const SandboxId& id, uint64_t limit) override {
    const std::lock_guard lock(mutex_);
    ids_.insert(id);
    last_limit_ = limit;
    return find(id);
  }
  image::Upper find(const SandboxId& id) const override { return {id.str(), id.str()}; }
  Result<void> remove(const SandboxId& id) override {
    const std::lock_guard lock(mutex_);
    if (failing_removals_ > 0) {
      --failing_removals_;
      return fail(Code::kInternal, "busy");
    }
    ids_.erase(id);
    return {};
  }
  Result<std::vector<SandboxId>> list() const override {
    const std::lock_guard lock(mutex_);
    return std::vector<SandboxId>(ids_.begin(), ids_.end());
  }
  Result<uint64_t> used_bytes(const SandboxId&) const override { return 0; }
  Result<image::PoolSpace> space() const override { return image::PoolSpace{100, free_.load()}; }
  Result<void> set_limit(const SandboxId&, uint64_t) override { return {}; }

  std::atomic<uint64_t> free_{50};
  std::atomic<uint64_t> last_limit_{0};
  std::atomic<int> failing_removals_{0};

 private:
  mutable std::mutex mutex_;
  std::set<SandboxId> ids_;
};

class LocalNodeTest : public ::testing::Test {
 protected:
  LocalNodeTest()
      : loops_(1),
        kernel_pool_(std::in_place, "kernel", 2, 100),
        store_pool_(std::in_place, "store", 1, 100) {
    agent_.emplace(loops_.loop(0), [this](http::Exchange& exchange) { return answer(exchange); });
    auto listener = net::make_listener("127.0.0.1", 0);
    driver_.state->agent_port = *net::local_port(*listener);
    EXPECT_TRUE(agent_->serve(std::move(*listener)));
    node_.emplace(LocalNode::Dependencies{.loop = loops_.loop(0),
                                          .driver = driver_,
                                          .uppers = uppers_,
                                          .store = store_,
                                          .kernel_pool = *kernel_pool_,
                                          .store_pool = *store_pool_,
                                          .clock = clock_,
                                          .agents = agents_,
                                          .tokens = TokenMaker("seed")},
                  LocalNode::Programs{.agent = "agent-hash"});
  }

  ~LocalNodeTest() override {
    loops_.stop();
    node_->stop();
    kernel_pool_.reset();
    store_pool_.reset();
    node_.reset();
    agent_.reset();
  }

  Task<void> answer(http::Exchange& exchange) {
    (void)co_await exchange.body().read_all(1 << 20);
    if (exchange.request().path() == "/journal") {
      last_control_ = exchange.request().headers.get("X-Alcove-Control").value_or("");
      if (on_journal_) co_await on_journal_(exchange);
      if (!exchange.started()) {
        (void)co_await exchange.respond(
            {.status = journal_.empty() ? 404 : 200, .headers = {}, .body = journal_});
      }
      co_return;
    }
    (void)co_await exchange.respond({.status = agent_status_, .headers = {}, .body = {}});
  }

  template <typename T>
  T wait(Task<T> task) {
    return boost::asio::co_spawn(loops_.loop(0), std::move(task), boost::asio::use_future).get();
  }

  static CreateRequest request(std::chrono::seconds timeout = 300s) {
    CreateRequest create;
    create.team = TeamId("team");
    create.template_record.name = "base";
    create.template_record.build_json = encode_build_image({});
    create.timeout = timeout;
    return create;
  }

  // Work that follows in the background: true as soon as the condition holds.
  template <typename Condition>
  static bool eventually(Condition condition, std::chrono::seconds within = 5s) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(2ms);
    }
    return true;
  }
  bool nothing_left() {
    return eventually([this] {
      const std::lock_guard lock(driver_.state->mutex);
      return uppers_.list()->empty() && driver_.state->alive.empty();
    });
  }

  image::TempDir dir_;
  AgentStore agents_{dir_.path() + "/agents"};
  SetClock clock_;
  testing::FakeDriver driver_;
  FakeUppers uppers_;
  store::testing::MemoryStore store_;
  net::EventLoops loops_;
  std::optional<net::BlockingPool> kernel_pool_;
  std::optional<net::BlockingPool> store_pool_;
  std::optional<http::Server> agent_;
  std::optional<LocalNode> node_;
  int agent_status_ = 204;
  // What the agent says to /journal; empty: it knows no such path.
  std::string journal_;
  std::function<Task<void>(http::Exchange&)> on_journal_;
  std::string last_control_;
};

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

TEST_F(LocalNodeTest, AClockThatIsSetNeitherEndsNorKeepsSandboxes) {
  std::filesystem::create_directories(dir_.path() + "/agents");
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

TEST_F(LocalNodeTest, DeathOfTheFirstProcessEndsIt) {
  loops_.start();
  const auto made = wait(node_->create(request()));
  ASSERT_TRUE(made);
  eventfd_write(driver_.state->exit_fds[(*made)->record().id.str()], 1);
  EXPECT_TRUE(eventually([&] { return node_->list().empty(); }));
  EXPECT_TRUE(eventually([&] { return store_.list_sandboxes()->empty(); }));
}

store::Sandbox stored(const char* id, WallTime end_at) {
  store::Sandbox record;
  record.id = SandboxId(id);
  record.machine_record = id;
  record.end_at = end_at;
  record.agent_hash = "old-agent";
  return record;
}

TEST_F(LocalNodeTest, AdoptsTheLivingAndClearsTheRest) {
  const WallTime now = clock_.now();
  ASSERT_TRUE(store_.put_sandbox(stored("ialive", now + 1h)));
  ASSERT_TRUE(store_.put_sandbox(stored("iexpired", now - 1s)));
  ASSERT_TRUE(store_.put_sandbox(stored("idead", now + 1h)));
  for (const char* id : {"ialive", "iexpired", "idead", "iorphan"}) {
    ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
  }
  driver_.adoptable = {"ialive", "iexpired"};
  std::filesystem::create_directories(dir_.path() + "/agents");
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
  std::filesystem::create_directories(dir_.path() + "/agents");
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

TEST_F(LocalNodeTest, WhatCouldNotBeClearedAwayAtAStartIsTriedAgain) {
  for (const char* id : {"iorphan", "iother"}) ASSERT_TRUE(uppers_.create(SandboxId(id), 1));
  driver_.fail_sweep = true;
  uppers_.failing_removals_ = 1;
  std::filesystem::create_directories(dir_.path() + "/agents");
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
  std::filesystem::create_directories(dir_.path() + "/agents");
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
  std::filesystem::create_directories(dir_.path() + "/agents");
  ASSERT_TRUE(node_->adopt_existing());
  EXPECT_NE(node_->find(SandboxId("ialive")), nullptr);
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
  std::filesystem::create_directories(dir_.path() + "/agents");
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
  std::filesystem::create_directories(dir_.path() + "/agents");
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
}  // namespace alcove::node

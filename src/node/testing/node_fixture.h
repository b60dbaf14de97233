// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>

#include "http/server.h"
#include "image/testing/temp_dir.h"
#include "net/event_loops.h"
#include "node/local_node.h"
#include "node/testing/fake_driver.h"
#include "store/testing/memory_store.h"

namespace alcove::node::testing {

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
    std::filesystem::create_directories(dir_.path() + "/agents");
    make_node();
  }

  // Also as the next server, while the loops do not run.
  void make_node() { make_node_on(loops_.loop(0)); }
  void make_node_on(boost::asio::io_context& loop) {
    node_.emplace(LocalNode::Dependencies{.loop = loop,
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

  static CreateRequest request(std::chrono::seconds timeout = std::chrono::seconds(300)) {
    CreateRequest create;
    create.team = TeamId("team");
    create.template_record.name = "base";
    create.template_record.build_json = encode_build_image({});
    create.timeout = timeout;
    return create;
  }

  // A record of an earlier server; for the fake driver its machine has the same name.
  static store::Sandbox stored(const char* id, WallTime end_at) {
    store::Sandbox record;
    record.id = SandboxId(id);
    record.machine_record = id;
    record.end_at = end_at;
    record.agent_hash = "old-agent";
    return record;
  }

  // Work that follows in the background: true as soon as the condition holds.
  template <typename Condition>
  static bool eventually(Condition condition,
                         std::chrono::milliseconds within = std::chrono::seconds(5)) {
    const auto deadline = std::chrono::steady_clock::now() + within;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
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
  FakeDriver driver_;
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

}  // namespace alcove::node::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_service.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <latch>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/testing/agent_fixture.h"
#include "net/task_group.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

namespace fs = std::filesystem;
using testing::write_text;

class WatchServiceTest : public testing::AgentTest {
 protected:
  std::string watch_message(const std::string& path, std::string_view more = "") const {
    return cat(R"({"path":")", path, "\"", more, "}");
  }

  // A WatchDir call whose messages are read one by one.
  struct Watching {
    std::unique_ptr<http::ClientConnection> connection;
    std::string received;
  };
  Watching watch(const std::string& message, http::Headers headers = {}) {
    Watching watching{connect(), ""};
    headers.add("Content-Type", "application/connect+json");
    std::string body;
    connect::append_envelope(body, message);
    EXPECT_TRUE(run(watching.connection->write_head(
        head("POST", "/filesystem.Filesystem/WatchDir", std::move(headers)), body.size(), body)));
    EXPECT_TRUE(run(watching.connection->finish_body()));
    const auto answer = run(watching.connection->read_head("POST"));
    EXPECT_TRUE(answer && answer->status == 200);
    return watching;
  }
  // The next message, be it the end of the stream; empty when the connection has ended.
  std::string next(Watching& watching) {
    for (;;) {
      const std::string& have = watching.received;
      if (have.size() >= 5) {
        uint32_t size = 0;
        for (size_t i = 1; i < 5; ++i) size = size << 8 | static_cast<uint8_t>(have[i]);
        if (have.size() >= 5 + size) {
          std::string message = have.substr(5, size);
          watching.received.erase(0, 5 + size);
          return message;
        }
      }
      char buffer[4096];
      const auto count = run(watching.connection->body().read(buffer));
      if (!count || *count == 0) return "";
      watching.received.append(buffer, *count);
    }
  }

  std::string poll(const std::string& id) {
    return rpc("/filesystem.Filesystem/GetWatcherEvents", watcher(id)).body;
  }
  static std::string watcher(const std::string& id) { return cat(R"({"watcherId":")", id, "\"}"); }
  std::string create_watcher(const std::string& message) {
    const http::Response answer = rpc("/filesystem.Filesystem/CreateWatcher", message);
    EXPECT_EQ(answer.status, 200) << answer.body;
    const auto object = connect::parse_message(answer.body);
    return object ? connect::read_string(*object, "watcherId").value() : "";
  }

  testing::TempDir watched_;
};

TEST_F(WatchServiceTest, StreamBeginsWithStartAndBringsEvents) {
  auto watching = watch(watch_message(watched_.path()));
  EXPECT_EQ(next(watching), R"({"start":{}})");
  write_text(watched_ / "f", "x");
  EXPECT_EQ(next(watching), R"({"filesystem":{"name":"f","type":"EVENT_TYPE_CREATE"}})");
  EXPECT_EQ(next(watching), R"({"filesystem":{"name":"f","type":"EVENT_TYPE_WRITE"}})");
}

TEST_F(WatchServiceTest, StreamEndsAtItsDeadline) {
  auto watching = watch(watch_message(watched_.path()), {{"Connect-Timeout-Ms", "100"}});
  EXPECT_EQ(next(watching), R"({"start":{}})");
  EXPECT_NE(next(watching).find("deadline_exceeded"), std::string::npos);
  EXPECT_EQ(next(watching), "");
}

TEST_F(WatchServiceTest, StreamIsKeptAlive) {
  auto watching = watch(watch_message(watched_.path()), {{"Keepalive-Ping-Interval", "1"}});
  EXPECT_EQ(next(watching), R"({"start":{}})");
  EXPECT_EQ(next(watching), R"({"keepalive":{}})");
}

TEST_F(WatchServiceTest, StreamSaysWhatCannotBeWatched) {
  auto missing = watch(watch_message(watched_ / "nothing"));
  EXPECT_NE(next(missing).find("not_found"), std::string::npos);
  write_text(watched_ / "file", "x");
  auto file = watch(watch_message(watched_ / "file"));
  EXPECT_NE(next(file).find("invalid_argument"), std::string::npos);
}

TEST_F(WatchServiceTest, PolledWatcherCollectsEagerly) {
  const std::string id = create_watcher(watch_message(watched_.path(), R"(,"recursive":true)"));
  EXPECT_EQ(id.size(), 21u);
  EXPECT_EQ(id[0], 'w');
  EXPECT_EQ(poll(id), "{}");
  fs::create_directory(watched_ / "d");
  // The directory is watched by itself, not when somebody asks.
  run(net::sleep_for(std::chrono::milliseconds(200)));
  write_text(watched_ / "d/f", "x");
  run(net::sleep_for(std::chrono::milliseconds(200)));
  const std::string events = poll(id);
  EXPECT_NE(events.find(R"({"name":"d/f","type":"EVENT_TYPE_WRITE"})"), std::string::npos)
      << events;
  EXPECT_EQ(poll(id), "{}");
}

TEST_F(WatchServiceTest, PollSeesWhatWasDoneRightBefore) {
  const std::string id = create_watcher(watch_message(watched_.path()));
  for (int i = 0; i < 50; ++i) {
    const std::string name = cat("f", i);
    // The agent has no turn in between.
    write_text(watched_ / name, "x");
    EXPECT_EQ(poll(id),
              cat(R"({"events":[{"name":")", name, R"(","type":"EVENT_TYPE_CREATE"},{"name":")",
                  name, R"(","type":"EVENT_TYPE_WRITE"}]})"));
  }
}

TEST_F(WatchServiceTest, RemovedWatcherIsUnknown) {
  const std::string id = create_watcher(watch_message(watched_.path()));
  EXPECT_EQ(rpc("/filesystem.Filesystem/RemoveWatcher", watcher(id)).status, 200);
  EXPECT_EQ(rpc("/filesystem.Filesystem/RemoveWatcher", watcher(id)).status, 404);
  EXPECT_EQ(rpc("/filesystem.Filesystem/GetWatcherEvents", watcher(id)).status, 404);
}

TEST_F(WatchServiceTest, WatcherOfNothingIsRefused) {
  const http::Response answer =
      rpc("/filesystem.Filesystem/CreateWatcher", watch_message(watched_ / "nothing"));
  EXPECT_EQ(answer.status, 404);
}

class PolledWatchersTest : public ::testing::Test {
 protected:
  Result<std::string> create(PolledWatchers& watchers) {
    return net::testing::run(loop_,
                             watchers.create(WatchRequest{dir_.path(), WatchOptions{}}, accounts_));
  }
  Result<std::vector<FilesystemEvent>> take(PolledWatchers& watchers, const std::string& id) {
    return net::testing::run(loop_, watchers.take(id));
  }
  static std::vector<std::string> names_of(const Result<std::vector<FilesystemEvent>>& events) {
    EXPECT_TRUE(events) << events.error().message();
    std::vector<std::string> names;
    if (events) {
      for (const FilesystemEvent& event : *events) names.push_back(event.name);
    }
    return names;
  }
  void pause(std::chrono::milliseconds time) { net::testing::run(loop_, net::sleep_for(time)); }

  testing::TempDir dir_;
  boost::asio::io_context loop_{1};
  FilePools pools_;
  std::shared_ptr<const Accounts> accounts_ = std::make_shared<Accounts>("", "");
};

TEST_F(PolledWatchersTest, NumberIsLimited) {
  PolledWatchers watchers(loop_.get_executor(), pools_, {.watchers = 1});
  ASSERT_TRUE(create(watchers));
  const auto refused = create(watchers);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
}

TEST_F(PolledWatchersTest, EventsThatNobodyFetchesWaitInTheKernel) {
  PolledWatchers watchers(loop_.get_executor(), pools_, {.events = 1});
  const std::string id = create(watchers).value();
  for (const char* name : {"a", "b", "c"}) {
    write_text(dir_ / name, "x");
    pause(std::chrono::milliseconds(100));
  }
  std::vector<std::string> names;
  size_t before = 0;
  do {
    before = names.size();
    for (std::string& name : names_of(take(watchers, id))) names.push_back(std::move(name));
  } while (names.size() > before);
  EXPECT_EQ(names, (std::vector<std::string>{"a", "a", "b", "b", "c", "c"}));
}

TEST_F(PolledWatchersTest, EventsThatTheKernelHasLostFailTheWatcher) {
  PolledWatchers watchers(loop_.get_executor(), pools_, {.events = 1});
  const std::string id = create(watchers).value();
  write_text(dir_ / "a", "x");
  pause(std::chrono::milliseconds(300));
  const std::string limit = testing::read_text("/proc/sys/fs/inotify/max_queued_events");
  // Two different files in turn, because equal events in a row become one.
  write_text(dir_ / "b", "x");
  for (int i = 0; i <= std::stoi(limit) / 2 + 1; ++i) {
    for (const char* name : {"a", "b"}) fs::permissions(dir_ / name, fs::perms(0644));
  }
  Result<std::vector<FilesystemEvent>> events;
  do {
    events = take(watchers, id);
  } while (events && !events->empty());
  ASSERT_FALSE(events);
  EXPECT_EQ(events.error().code(), Code::kInternal);
}

// All threads of the pool wait until the end of this.
class BusyPool {
 public:
  explicit BusyPool(net::BlockingPool& pool) {
    for (int i = 0; i < kMoreThanThreads; ++i) {
      EXPECT_TRUE(pool.submit([over = over_] { over->wait(); }));
    }
  }
  ~BusyPool() { over_->count_down(); }
  BusyPool(const BusyPool&) = delete;
  BusyPool& operator=(const BusyPool&) = delete;

 private:
  static constexpr int kMoreThanThreads = 100;
  std::shared_ptr<std::latch> over_ = std::make_shared<std::latch>(1);
};

TEST_F(PolledWatchersTest, PollThatIsCanceledLeavesTheEventsToTheNext) {
  PolledWatchers watchers(loop_.get_executor(), pools_);
  const std::string id = create(watchers).value();
  {
    const BusyPool busy(*pools_.at(dir_.path()).pool);
    net::TaskGroup polls(loop_.get_executor());
    const auto poll = [](PolledWatchers& polled, std::string asked) -> Task<void> {
      (void)co_await polled.take(std::move(asked));
    };
    polls.spawn(poll(watchers, id));
    pause(std::chrono::milliseconds(50));
    write_text(dir_ / "a", "x");
    net::testing::run(loop_, polls.stop());
  }
  EXPECT_EQ(names_of(take(watchers, id)), (std::vector<std::string>{"a", "a"}));
}

TEST_F(PolledWatchersTest, PollOfAWatcherThatIsRemovedEnds) {
  PolledWatchers watchers(loop_.get_executor(), pools_);
  const std::string id = create(watchers).value();
  const BusyPool busy(*pools_.at(dir_.path()).pool);
  net::TaskGroup polls(loop_.get_executor());
  std::optional<Result<std::vector<FilesystemEvent>>> outcome;
  const auto poll = [](PolledWatchers& polled, std::string asked, auto& got) -> Task<void> {
    got.emplace(co_await polled.take(std::move(asked)));
  };
  polls.spawn(poll(watchers, id, outcome));
  pause(std::chrono::milliseconds(50));
  ASSERT_TRUE(watchers.remove(id));
  net::testing::run(loop_, polls.join());
  ASSERT_TRUE(outcome && !*outcome);
  EXPECT_EQ(outcome->error().code(), Code::kNotFound);
}

TEST_F(PolledWatchersTest, ForgottenWatchersAreRemoved) {
  PolledWatchers watchers(loop_.get_executor(), pools_, {.idle = std::chrono::milliseconds(50)});
  ASSERT_TRUE(create(watchers));
  pause(std::chrono::milliseconds(300));
  EXPECT_EQ(watchers.size(), 0u);
}

}  // namespace
}  // namespace alcove::agent

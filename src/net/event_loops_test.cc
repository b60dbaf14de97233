// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/event_loops.h"

#include <gtest/gtest.h>

#include <future>
#include <stdexcept>

#include <boost/asio/post.hpp>

#include "base/log.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

TEST(EventLoops, EveryLoopRunsOnItsOwnThreadUntilStopped) {
  EventLoops loops(2);
  loops.start();
  std::vector<std::thread::id> threads;
  for (size_t i = 0; i < loops.size(); ++i) {
    std::promise<std::thread::id> seen;
    boost::asio::post(loops.loop(i), [&seen] { seen.set_value(std::this_thread::get_id()); });
    threads.push_back(seen.get_future().get());
  }
  EXPECT_NE(threads[0], threads[1]);
  loops.stop();
  loops.stop();
}

Task<void> sleep_long() { co_await sleep_for(std::chrono::hours(1)); }

TEST(EventLoops, StopDoesNotWaitForTasks) {
  EventLoops loops(1);
  spawn(loops.loop(0), sleep_long());
  loops.start();
  loops.stop();
}

struct Flag {
  explicit Flag(bool& used) : set(used) {}
  ~Flag() { set = true; }
  bool& set;
};

Task<void> sleep_with_flag(bool& destroyed) {
  const Flag flag(destroyed);
  co_await sleep_for(std::chrono::hours(1));
}

TEST(EventLoops, StopDestroysTheTasksThatAreLeft) {
  EventLoops loops(2);
  bool destroyed[2] = {};
  for (size_t i = 0; i < 2; ++i) spawn(loops.loop(i), sleep_with_flag(destroyed[i]));
  loops.start();
  for (size_t i = 0; i < 2; ++i) {
    std::promise<void> started;
    boost::asio::post(loops.loop(i), [&started] { started.set_value(); });
    started.get_future().wait();
  }
  loops.stop();
  EXPECT_TRUE(destroyed[0] && destroyed[1]);
  // What comes too late is dropped.
  spawn(loops.loop(0), sleep_long());
}

Task<void> throw_error() {
  co_await yield();
  throw std::runtime_error("the reason");
}

TEST(Spawn, LogsWhatATaskThrows) {
  std::string logged;
  set_log_sink([&logged](LogLevel, std::string_view message) { logged += message; });
  boost::asio::io_context loop(1);
  spawn(loop, throw_error());
  loop.run();
  set_log_sink([](LogLevel, std::string_view) {});
  EXPECT_NE(logged.find("the reason"), std::string::npos);
}

}  // namespace
}  // namespace alcove::net

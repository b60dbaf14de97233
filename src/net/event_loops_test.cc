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

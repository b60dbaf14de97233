// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/notifier.h"

#include <gtest/gtest.h>

#include <optional>

#include <boost/asio/io_context.hpp>

#include "net/event_loops.h"
#include "net/task_group.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

using testing::run;

Task<void> count_wakeup(Notifier& notifier, int& count) {
  co_await notifier.wait();
  ++count;
}

Task<bool> wait_until(Notifier& notifier, Notifier::TimePoint deadline) {
  co_return co_await notifier.wait_until(deadline);
}

Task<void> notify_soon(Notifier& notifier) {
  co_await yield();
  notifier.notify_all();
}

TEST(Notifier, WakesAllThatWait) {
  boost::asio::io_context loop(1);
  Notifier notifier(loop.get_executor());
  int count = 0;
  for (int i = 0; i < 3; ++i) spawn(loop, count_wakeup(notifier, count));
  loop.poll();
  EXPECT_EQ(count, 0);
  notifier.notify_all();
  loop.poll();
  EXPECT_EQ(count, 3);
}

TEST(Notifier, SaysWhetherTheDeadlinePassed) {
  boost::asio::io_context loop(1);
  Notifier notifier(loop.get_executor());
  const auto now = std::chrono::steady_clock::now();
  EXPECT_FALSE(run(loop, wait_until(notifier, now)));
  spawn(loop, notify_soon(notifier));
  EXPECT_TRUE(run(loop, wait_until(notifier, now + std::chrono::hours(1))));
}

TEST(Notifier, ItsEndWakesThoseWhoWait) {
  boost::asio::io_context loop(1);
  std::optional<Notifier> notifier(std::in_place, loop.get_executor());
  int count = 0;
  spawn(loop, count_wakeup(*notifier, count));
  loop.poll();
  notifier.reset();
  loop.poll();
  EXPECT_EQ(count, 1);
}

TEST(Notifier, ALoopMayEndWhileSomeoneWaits) {
  int count = 0;
  {
    boost::asio::io_context loop(1);
    Notifier notifier(loop.get_executor());
    spawn(loop, count_wakeup(notifier, count));
    loop.poll();
  }
  EXPECT_EQ(count, 0);
}

struct Flag {
  explicit Flag(bool& used) : set(used) {}
  ~Flag() { set = true; }
  bool& set;
};

Task<void> loop_for_ever(bool& destroyed) {
  const Flag flag(destroyed);
  for (;;) co_await sleep_for(std::chrono::hours(1));
}

Task<void> stop_group(TaskGroup& group) {
  co_await yield();
  co_await group.stop();
}

TEST(TaskGroup, StopEndsChildrenThatLoopForEver) {
  boost::asio::io_context loop(1);
  TaskGroup group(loop.get_executor());
  bool ended[3] = {};
  for (bool& flag : ended) group.spawn(loop_for_ever(flag));
  loop.poll();
  EXPECT_EQ(group.size(), 3u);
  run(loop, stop_group(group));
  EXPECT_TRUE(ended[0] && ended[1] && ended[2]);
  EXPECT_EQ(group.size(), 0u);
  run(loop, stop_group(group));
}

TEST(TaskGroup, StopBeforeAChildHasBegun) {
  boost::asio::io_context loop(1);
  TaskGroup group(loop.get_executor());
  bool ended = false;
  group.spawn(loop_for_ever(ended));
  run(loop, group.stop());
  EXPECT_EQ(group.size(), 0u);
}

TEST(TaskGroup, RefusesChildrenAfterStop) {
  boost::asio::io_context loop(1);
  TaskGroup group(loop.get_executor());
  run(loop, group.stop());
  bool ended = false;
  group.spawn(loop_for_ever(ended));
  EXPECT_EQ(group.size(), 0u);
}

Task<void> yield_and_count(int& count) {
  co_await yield();
  ++count;
}

TEST(TaskGroup, JoinWaitsForTheChildrensOwnEnd) {
  boost::asio::io_context loop(1);
  TaskGroup group(loop.get_executor());
  int count = 0;
  for (int i = 0; i < 5; ++i) group.spawn(yield_and_count(count));
  run(loop, group.join());
  EXPECT_EQ(count, 5);
}

TEST(TaskGroup, DestructorCancels) {
  boost::asio::io_context loop(1);
  bool ended = false;
  {
    TaskGroup group(loop.get_executor());
    group.spawn(loop_for_ever(ended));
    loop.poll();
  }
  loop.poll();
  EXPECT_TRUE(ended);
}

}  // namespace
}  // namespace alcove::net

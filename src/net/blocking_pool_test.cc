// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/blocking_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <stdexcept>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "net/task_group.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

using testing::run;

Task<Result<int>> add_on_pool(BlockingPool& pool, std::thread::id loop_thread) {
  auto function = [loop_thread]() -> Result<int> {
    return std::this_thread::get_id() == loop_thread ? 0 : 42;
  };
  auto value = co_await pool.run(std::move(function));
  EXPECT_EQ(std::this_thread::get_id(), loop_thread);
  co_return value;
}

TEST(BlockingPool, RunsOnAnotherThreadAndResumesOnTheLoop) {
  boost::asio::io_context loop(1);
  BlockingPool pool("pool", 2, 10);
  EXPECT_EQ(run(loop, add_on_pool(pool, std::this_thread::get_id())).value(), 42);
}

Task<Result<int>> fail_on_pool(BlockingPool& pool) {
  auto function = []() -> Result<int> { throw std::runtime_error("broken"); };
  co_return co_await pool.run(std::move(function));
}

TEST(BlockingPool, AnExceptionBecomesAnError) {
  boost::asio::io_context loop(1);
  BlockingPool pool("pool", 2, 10);
  const auto value = run(loop, fail_on_pool(pool));
  ASSERT_FALSE(value);
  EXPECT_EQ(value.error().code(), Code::kInternal);
  EXPECT_EQ(value.error().message(), "broken");
}

TEST(BlockingPool, RefusesWhenTheQueueIsFull) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  BlockingPool pool("pool", 1, 1);
  std::promise<void> started;
  ASSERT_TRUE(pool.submit([&started, gate] {
    started.set_value();
    gate.wait();
  }));
  started.get_future().wait();
  ASSERT_TRUE(pool.submit([gate] { gate.wait(); }));
  const auto refused = pool.submit([] {});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  go.set_value();
}

TEST(BlockingPool, DestructorRunsWhatIsQueued) {
  std::atomic<int> ran = 0;
  {
    BlockingPool pool("pool", 2, 100);
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(pool.submit([&ran] { ++ran; }));
  }
  EXPECT_EQ(ran, 50);
}

TEST(BlockingPool, SpareThreadsPassJobsThatHang) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  BlockingPool pool("pool", 2, 100, 8);
  for (int i = 0; i < 7; ++i) ASSERT_TRUE(pool.submit([gate] { gate.wait(); }));
  std::promise<void> ran;
  ASSERT_TRUE(pool.submit([&ran] { ran.set_value(); }));
  EXPECT_EQ(ran.get_future().wait_for(std::chrono::seconds(10)), std::future_status::ready);
  go.set_value();
}

TEST(BlockingPool, SpareThreadsHaveALimit) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  std::atomic<int> started = 0;
  std::atomic<bool> passed = false;
  {
    BlockingPool pool("pool", 2, 100, 2);
    for (int i = 0; i < 6; ++i) {
      ASSERT_TRUE(pool.submit([gate, &started] {
        ++started;
        gate.wait();
      }));
    }
    ASSERT_TRUE(pool.submit([&passed] { passed = true; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    EXPECT_EQ(started, 4);
    EXPECT_FALSE(passed);
    go.set_value();
  }
  EXPECT_TRUE(passed);
}

// Says which thread destroyed it.
class Mourned {
 public:
  explicit Mourned(std::promise<std::thread::id>& end) : end_(&end) {}
  Mourned(Mourned&& other) noexcept : end_(std::exchange(other.end_, nullptr)) {}
  Mourned& operator=(Mourned&&) = delete;
  ~Mourned() {
    if (end_ != nullptr) end_->set_value(std::this_thread::get_id());
  }

 private:
  std::promise<std::thread::id>* end_;
};

TEST(BlockingPool, WhatItHoldsIsDestroyedOnAThreadBeTheQueueFull) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  std::promise<void> started;
  BlockingPool pool("pool", 1, 1);
  ASSERT_TRUE(pool.submit([gate, &started] {
    started.set_value();
    gate.wait();
  }));
  started.get_future().wait();
  ASSERT_TRUE(pool.submit([gate] { gate.wait(); }));
  ASSERT_FALSE(pool.submit([] {}));
  std::promise<std::thread::id> end;
  auto ended = end.get_future();
  pool.hold(Mourned(end)).reset();
  EXPECT_EQ(ended.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
  go.set_value();
  EXPECT_NE(ended.get(), std::this_thread::get_id());
}

TEST(BlockingPool, WhatItHoldsIsDestroyedByAJobThatHasTheLastReference) {
  BlockingPool pool("pool", 1, 1);
  std::promise<std::thread::id> end;
  std::promise<std::thread::id> job;
  bool ended_inside = false;
  auto ended = end.get_future();
  auto held = pool.hold(Mourned(end));
  ASSERT_TRUE(pool.submit([held = std::move(held), &job, &ended, &ended_inside]() mutable {
    held.reset();
    ended_inside = ended.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
    job.set_value(std::this_thread::get_id());
  }));
  EXPECT_EQ(job.get_future().get(), ended.get());
  EXPECT_TRUE(ended_inside);
}

TEST(BlockingPool, WhatItHoldsMayOutliveIt) {
  std::promise<std::thread::id> end;
  std::shared_ptr<Mourned> held;
  {
    BlockingPool pool("pool", 1, 1);
    held = pool.hold(Mourned(end));
  }
  held.reset();
  EXPECT_EQ(end.get_future().get(), std::this_thread::get_id());
}

Task<void> wait_on_pool(BlockingPool& pool, std::shared_future<void> gate, Code& outcome) {
  auto function = [gate]() -> Result<void> {
    gate.wait();
    return {};
  };
  const auto result = co_await pool.run(std::move(function));
  outcome = result ? Code::kUnknown : result.error().code();
}

Task<void> stop_group(TaskGroup& group) {
  co_await yield();
  co_await yield();
  co_await group.stop();
}

TEST(BlockingPool, ACanceledTaskDoesNotWaitForItsJob) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  BlockingPool pool("pool", 1, 1);
  boost::asio::io_context loop(1);
  TaskGroup group(loop.get_executor());
  Code outcome = Code::kUnknown;
  group.spawn(wait_on_pool(pool, gate, outcome));
  run(loop, stop_group(group));
  EXPECT_EQ(outcome, Code::kCanceled);
  go.set_value();
}

TEST(BlockingPool, AJobMayEndAfterItsLoopIsDestroyed) {
  std::promise<void> go;
  auto gate = go.get_future().share();
  BlockingPool pool("pool", 1, 1);
  Code outcome = Code::kUnknown;
  {
    boost::asio::io_context loop(1);
    TaskGroup group(loop.get_executor());
    group.spawn(wait_on_pool(pool, gate, outcome));
    loop.poll();
  }
  go.set_value();
}

}  // namespace
}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_task.h"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "agent/testing/temp_dir.h"
#include "net/task_group.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

Task<void> take_then_cancel(WatchTask& watch, net::TaskGroup& canceled) {
  EXPECT_TRUE(co_await watch.take());
  canceled.cancel();
}

Task<void> take_once(WatchTask& watch, bool& done) { done = (co_await watch.take()).has_value(); }

TEST(WatchTask, TakeThatIsCanceledAtItsTurnHoldsUpNobody) {
  boost::asio::io_context loop{1};
  net::BlockingPool pool("files", 2, 100);
  const testing::TempDir dir;
  const auto watch = net::testing::run(
      loop, WatchTask::open(pool, dir.path(), {}, std::make_shared<Accounts>("", "")));
  ASSERT_TRUE(watch) << watch.error().message();
  net::TaskGroup first(loop.get_executor());
  net::TaskGroup second(loop.get_executor());
  bool second_done = false;
  first.spawn(take_then_cancel(**watch, second));
  second.spawn(take_once(**watch, second_done));
  net::testing::run(loop, first.join());
  net::testing::run(loop, second.join());
  EXPECT_FALSE(second_done);

  net::TaskGroup third(loop.get_executor());
  bool third_done = false;
  third.spawn(take_once(**watch, third_done));
  for (int i = 0; i < 100 && !third_done; ++i) {
    net::testing::run(loop, net::sleep_for(std::chrono::milliseconds(20)));
  }
  EXPECT_TRUE(third_done);
  net::testing::run(loop, third.stop());
}

}  // namespace
}  // namespace alcove::agent

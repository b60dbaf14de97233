// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "net/task_group.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

using TimePoint = Process::TimePoint;

TimePoint soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(2); }

// A process that is nothing but a pipe to its stdin, which the test reads.
class ProcessInputTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    stdin_.reset(ends[0]);
    Spawned spawned;
    spawned.input.reset(ends[1]);
    process_ = std::make_shared<Process>(loop_.get_executor(), ProcessInfo{}, std::move(spawned));
  }

  Result<void> write(std::string data) {
    return net::testing::run(loop_,
                             process_->write_input(InputKind::kStdin, std::move(data), soon()));
  }
  void turn() { net::testing::run(loop_, net::sleep_for(std::chrono::milliseconds(20))); }
  void read_all() {
    std::array<char, 65536> buffer;
    while (::read(stdin_.get(), buffer.data(), buffer.size()) > 0) {
    }
  }

  boost::asio::io_context loop_{1};
  UniqueFd stdin_;
  std::shared_ptr<Process> process_;
};

Task<void> write_then_cancel(std::shared_ptr<Process> process, std::string data,
                             net::TaskGroup& canceled) {
  EXPECT_TRUE(co_await process->write_input(InputKind::kStdin, std::move(data), soon()));
  canceled.cancel();
}

Task<void> write_once(std::shared_ptr<Process> process) {
  (void)co_await process->write_input(InputKind::kStdin, "x", soon());
}

TEST_F(ProcessInputTest, WriteThatIsCanceledAtItsTurnHoldsUpNobody) {
  net::TaskGroup first(loop_.get_executor());
  net::TaskGroup second(loop_.get_executor());
  // More than a pipe holds.
  first.spawn(write_then_cancel(process_, std::string(70'000, 'x'), second));
  turn();
  second.spawn(write_once(process_));
  turn();
  ASSERT_EQ(first.size(), 1u);
  ASSERT_EQ(second.size(), 1u);
  read_all();
  net::testing::run(loop_, first.join());
  net::testing::run(loop_, second.join());
  const auto written = write("next");
  EXPECT_TRUE(written) << written.error().message();
}

}  // namespace
}  // namespace alcove::agent

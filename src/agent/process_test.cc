// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
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

Task<void> write_and_count(std::shared_ptr<Process> process, std::string data, int& written) {
  if (co_await process->write_input(InputKind::kStdin, std::move(data), soon())) ++written;
}

TEST_F(ProcessInputTest, WhatWasWrittenBeforeTheCloseArrivesInItsOrder) {
  net::TaskGroup writers(loop_.get_executor());
  int written = 0;
  // More than a pipe holds, so that all wait but the first.
  std::string all;
  for (const char letter : {'a', 'b', 'c', 'd'}) {
    const std::string data(70'000, letter);
    all += data;
    writers.spawn(write_and_count(process_, data, written));
    turn();
  }
  ASSERT_TRUE(process_->close_input());
  EXPECT_FALSE(write("too late"));
  std::string arrived;
  std::array<char, 65536> buffer;
  for (int i = 0; i < 200; ++i) {
    const ssize_t count = ::read(stdin_.get(), buffer.data(), buffer.size());
    if (count == 0) break;
    if (count > 0) arrived.append(buffer.data(), static_cast<size_t>(count));
    turn();
  }
  EXPECT_EQ(written, 4);
  EXPECT_TRUE(arrived == all) << arrived.size();
  // Closed: the end is there.
  EXPECT_EQ(::read(stdin_.get(), buffer.data(), buffer.size()), 0);
}

TEST_F(ProcessInputTest, NobodyGetsAheadOfThoseWhoWait) {
  net::TaskGroup writers(loop_.get_executor());
  int written = 0;
  writers.spawn(write_and_count(process_, std::string(70'000, 'a'), written));
  turn();
  for (const char letter : {'b', 'c', 'd', 'e'}) {
    writers.spawn(write_and_count(process_, std::string(1, letter), written));
    turn();
  }
  std::string arrived;
  std::array<char, 65536> buffer;
  while (arrived.size() < 70'004) {
    const ssize_t count = ::read(stdin_.get(), buffer.data(), buffer.size());
    if (count > 0) arrived.append(buffer.data(), static_cast<size_t>(count));
    loop_.restart();
    loop_.poll_one();
  }
  EXPECT_EQ(arrived.substr(70'000), "bcde");
  net::testing::run(loop_, writers.join());
  EXPECT_EQ(written, 4 + 1);
}

// Where no one takes what is printed.
class ProcessOutputTest : public ::testing::Test {
 protected:
  std::shared_ptr<Process> printing(UniqueFd& stdout_end) {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    Spawned spawned;
    spawned.output.reset(ends[0]);
    spawned.error_output.reset(::dup(ends[0]));
    stdout_end.reset(ends[1]);
    auto process =
        std::make_shared<Process>(loop_.get_executor(), ProcessInfo{}, std::move(spawned));
    return process;
  }

  boost::asio::io_context loop_{1};
};

TEST_F(ProcessOutputTest, ManySlowSubscribersHoldUpWhatTheyListenTo) {
  UniqueFd stdout_end;
  const auto process = printing(stdout_end);
  std::vector<std::shared_ptr<Outbox>> subscribers;
  for (int i = 0; i < 1000; ++i) subscribers.push_back(process->subscribe(connect::Codec::kProto));
  process->start([](Process&) {});
  const std::string text(64 * 1024, 'x');
  size_t printed = 0;
  for (int i = 0; i < 50; ++i) {
    const ssize_t count = ::write(stdout_end.get(), text.data(), text.size());
    if (count > 0) printed += static_cast<size_t>(count);
    net::testing::run(loop_, net::sleep_for(std::chrono::milliseconds(5)));
  }
  // One read more for each at most than what may wait for all together.
  EXPECT_LT(Outbox::total(), Outbox::kMaxTotal + 1000 * 33 * 1024);
  EXPECT_LT(printed, 256u * 1024);
  // Who takes it gets more.
  const size_t before = printed;
  for (const auto& subscriber : subscribers) {
    std::string batch;
    subscriber->take(batch);
    subscriber->sent();
  }
  EXPECT_EQ(Outbox::total(), 0u);
  process->taken();
  net::testing::run(loop_, net::sleep_for(std::chrono::milliseconds(20)));
  const ssize_t more = ::write(stdout_end.get(), text.data(), text.size());
  EXPECT_GT(more, 0) << before;
  subscribers.clear();
  process->exited(0);
}

TEST_F(ProcessOutputTest, EndBeforeTheStartIsReported) {
  UniqueFd stdout_end;
  const auto process = printing(stdout_end);
  process->exited(0);
  // From then on outputs that are open do not count.
  ASSERT_TRUE(process->signal(SIGKILL));
  ASSERT_TRUE(process->end());
  int ends = 0;
  process->start([&ends](Process&) { ++ends; });
  net::testing::run(loop_, net::sleep_for(std::chrono::milliseconds(20)));
  EXPECT_EQ(ends, 1);
}

TEST_F(ProcessOutputTest, QuietStreamKeepsNoLargeBuffer) {
  Outbox outbox(loop_.get_executor(), connect::Codec::kJson);
  std::string batch;
  for (int i = 0; i < 2; ++i) {
    outbox.pending.append(300'000, 'x');
    outbox.added();
    outbox.take(batch);
    // More comes while that is sent.
    outbox.pending.append(300'000, 'y');
    outbox.added();
    outbox.sent();
    outbox.release(batch);
    EXPECT_EQ(outbox.pending.size(), 300'000u);
    outbox.take(batch);
    outbox.sent();
    EXPECT_TRUE(outbox.keeps_much(batch));
    outbox.release(batch);
    EXPECT_FALSE(outbox.keeps_much(batch));
    EXPECT_LE(batch.capacity(), Outbox::kMostKept);
    EXPECT_LE(outbox.pending.capacity(), Outbox::kMostKept);
  }
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/reaper.h"

#include <gtest/gtest.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include <boost/asio/io_context.hpp>

namespace alcove::agent {
namespace {

// A child that ends with this status, or waits to be killed if there is none. With a pid of our
// choice, if it is free.
pid_t make_child(std::optional<int> status, pid_t wanted = 0) {
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  if (wanted != 0) {
    arguments.set_tid = reinterpret_cast<uint64_t>(&wanted);
    arguments.set_tid_size = 1;
  }
  const long pid = ::syscall(SYS_clone3, &arguments, sizeof arguments);
  if (pid == 0) {
    if (status) ::_exit(*status);
    for (;;) ::pause();
  }
  EXPECT_GT(pid, 0) << std::strerror(errno);
  return static_cast<pid_t>(pid);
}

class ReaperTest : public ::testing::Test {
 protected:
  void SetUp() override {
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    auto reaper = ChildReaper::create(loop_.get_executor());
    ASSERT_TRUE(reaper) << reaper.error().message();
    reaper_ = *std::move(reaper);
  }

  // Until the child's pid is free.
  void collect(pid_t pid) {
    for (int i = 0; i < 1000 && ::kill(pid, 0) == 0; ++i) {
      reaper_->collect();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    ASSERT_NE(::kill(pid, 0), 0);
  }

  boost::asio::io_context loop_{1};
  std::unique_ptr<ChildReaper> reaper_;
};

TEST_F(ReaperTest, TellsTheEndOfWhatIsWatched) {
  std::optional<int> status;
  const pid_t pid = make_child(7);
  reaper_->watch(pid, [&](int s) { status = s; });
  collect(pid);
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 7);
}

TEST_F(ReaperTest, AnEndBeforeItsStartIsKnownIsKept) {
  const auto start = reaper_->expect_start();
  start->pid = make_child(7);
  collect(start->pid);
  std::optional<int> status;
  reaper_->watch(start, [&](int s) { status = s; });
  ASSERT_TRUE(status);
  EXPECT_EQ(WEXITSTATUS(*status), 7);
}

TEST_F(ReaperTest, TheEndOfAnEarlierProcessWithTheSamePidIsNotKept) {
  // A start that takes for ever, so that all ends are looked at.
  const auto slow = reaper_->expect_start();
  const pid_t pid = make_child(7);
  collect(pid);
  const auto start = reaper_->expect_start();
  start->pid = make_child(std::nullopt, pid);
  ASSERT_EQ(start->pid, pid);
  std::optional<int> status;
  reaper_->watch(start, [&](int s) { status = s; });
  EXPECT_FALSE(status) << "of another process";
  ::kill(pid, SIGKILL);
  collect(pid);
  ASSERT_TRUE(status);
  EXPECT_EQ(WTERMSIG(*status), SIGKILL);
}

TEST_F(ReaperTest, AForgottenStartIsAnOrphan) {
  const auto start = reaper_->expect_start();
  start->pid = make_child(7);
  reaper_->forget_start(start);
  collect(start->pid);
  EXPECT_FALSE(start->wait_status);
}

}  // namespace
}  // namespace alcove::agent

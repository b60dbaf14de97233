// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/ids.h"
#include "sys/file_io.h"
#include "sys/fuse_connections.h"
#include "sys/message.h"
#include "sys/process.h"
#include "sys/testing/deadlocked_fuse.h"

namespace alcove::sys {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::steady_clock;

TEST(Message, CarriesBytesAndDescriptors) {
  auto pair = make_message_pair();
  ASSERT_TRUE(pair);
  int pipe_fds[2];
  ASSERT_EQ(::pipe(pipe_fds), 0);
  const UniqueFd read_end(pipe_fds[0]);
  UniqueFd write_end(pipe_fds[1]);
  ASSERT_TRUE(send_message(pair->first.get(), "hello", std::array{write_end.get()}));
  write_end.reset();
  auto message = receive_message(pair->second.get());
  ASSERT_TRUE(message);
  EXPECT_EQ(message->bytes, "hello");
  ASSERT_EQ(message->fds.size(), 1u);
  ASSERT_EQ(::write(message->fds[0].get(), "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(::read(read_end.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
}

TEST(Message, TellsAClosedPeerFromASilentOne) {
  auto pair = make_message_pair();
  ASSERT_TRUE(pair);
  const auto silent = receive_message(pair->first.get(), steady_clock::now() + milliseconds(1));
  ASSERT_FALSE(silent);
  EXPECT_EQ(silent.error().code(), Code::kDeadlineExceeded);
  pair->second.reset();
  const auto closed = receive_message(pair->first.get(), steady_clock::now() + seconds(5));
  ASSERT_FALSE(closed);
  EXPECT_EQ(closed.error().code(), Code::kUnavailable);
  EXPECT_EQ(send_message(pair->first.get(), "x", {}).error().error_number(), EPIPE);
}

// As root.
TEST(FuseConnections, EndByTheirOwnersIds) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  constexpr uint32_t kOwner = 3'000'000'123;
  const std::string point = ::testing::TempDir() + "alcove-fuse-" + random_alphanumeric(8);
  int fds[2];
  ASSERT_EQ(::pipe2(fds, O_CLOEXEC), 0);
  const UniqueFd read_end(fds[0]);
  UniqueFd write_end(fds[1]);
  int raw_pidfd = -1;
  const pid_t child =
      clone_process({.flags = CLONE_NEWPID | CLONE_NEWNS, .cgroup_fd = -1, .pidfd = &raw_pidfd});
  if (child == 0) {
    int error = ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 ? 0 : errno;
    if (error == 0) error = testing::deadlock_in_fuse(point.c_str(), kOwner);
    (void)!::write(write_end.get(), &error, sizeof error);
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  const UniqueFd pidfd(raw_pidfd);
  write_end.reset();
  int error = -1;
  EXPECT_EQ(::read(read_end.get(), &error, sizeof error), ssize_t{sizeof error});
  EXPECT_EQ(error, 0);
  kill_by_pidfd(pidfd.get());
  EXPECT_FALSE(wait_by_pidfd(pidfd.get(), steady_clock::now() + milliseconds(200)));
  EXPECT_TRUE(abort_fuse_connections(kOwner + 1, 1000));
  EXPECT_TRUE(abort_fuse_connections(kOwner - 1000, 1000));
  EXPECT_FALSE(wait_by_pidfd(pidfd.get(), steady_clock::now() + milliseconds(100)));
  EXPECT_TRUE(abort_fuse_connections(kOwner - 1, 2));
  EXPECT_TRUE(wait_by_pidfd(pidfd.get(), steady_clock::now() + seconds(10)));
  EXPECT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_EQ(::rmdir(point.c_str()), 0);
}

TEST(Process, PidfdReportsTheEndOfAProcess) {
  int raw_pidfd = -1;
  const pid_t child = clone_process({.pidfd = &raw_pidfd});
  if (child == 0) {
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  const UniqueFd pidfd(raw_pidfd);
  EXPECT_FALSE(wait_by_pidfd(pidfd.get(), steady_clock::now()));
  const auto start = process_start_time(child);
  ASSERT_TRUE(start) << start.error().message();
  EXPECT_GT(*start, 0u);
  kill_by_pidfd(pidfd.get());
  EXPECT_TRUE(wait_by_pidfd(pidfd.get(), steady_clock::now() + seconds(10)));
  ::waitpid(child, nullptr, 0);
  EXPECT_FALSE(process_start_time(child));
}

TEST(File, ReadsMoreThanOneBufferAndNamesTheFileOnFailure) {
  const auto status = read_file("/proc/self/status");
  ASSERT_TRUE(status);
  EXPECT_NE(status->find("Pid:"), std::string::npos);
  const auto missing = read_file("/nowhere/at/all");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code(), Code::kNotFound);
  EXPECT_NE(missing.error().message().find("/nowhere/at/all"), std::string::npos);
}

}  // namespace
}  // namespace alcove::sys

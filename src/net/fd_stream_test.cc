// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/fd_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include <string>

#include <boost/asio/io_context.hpp>

#include "net/event_loops.h"
#include "net/testing/loop_runner.h"

namespace alcove::net {
namespace {

using testing::run;

struct Pipe {
  explicit Pipe(boost::asio::io_context& loop) {
    int fds[2];
    EXPECT_EQ(::pipe2(fds, O_CLOEXEC), 0);
    read.emplace(loop.get_executor(), UniqueFd(fds[0]));
    write.emplace(loop.get_executor(), UniqueFd(fds[1]));
  }
  std::optional<FdStream> read;
  std::optional<FdStream> write;
};

Task<Result<std::string>> read_until_end(FdStream& stream) {
  std::string all;
  char buffer[8192];
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await stream.read_some(buffer));
    if (count == 0) co_return all;
    all.append(buffer, count);
  }
}

Task<void> write_and_close(FdStream& stream, std::string text) {
  EXPECT_TRUE(co_await stream.write_all(text));
  stream.close();
}

TEST(FdStream, CarriesMoreThanThePipeHolds) {
  boost::asio::io_context loop(1);
  Pipe pipe(loop);
  const std::string text(1'000'000, 'x');
  spawn(loop, write_and_close(*pipe.write, text));
  const auto received = run(loop, read_until_end(*pipe.read));
  ASSERT_TRUE(received);
  EXPECT_EQ(*received, text);
}

TEST(FdStream, TryReadDoesNotWait) {
  boost::asio::io_context loop(1);
  Pipe pipe(loop);
  char buffer[16];
  EXPECT_FALSE(pipe.read->try_read(buffer).has_value());
  ASSERT_EQ(::write(pipe.write->fd(), "abc", 3), 3);
  EXPECT_EQ(pipe.read->try_read(buffer)->value(), 3u);
  pipe.write->close();
  EXPECT_EQ(pipe.read->try_read(buffer)->value(), 0u);
}

TEST(FdStream, AWriteWithoutReaderIsAnErrorNotASignal) {
  boost::asio::io_context loop(1);
  Pipe pipe(loop);
  pipe.read->close();
  const auto written = run(loop, pipe.write->write_some("x"));
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().error_number(), EPIPE);
}

TEST(FdStream, AReadDeadlinePasses) {
  boost::asio::io_context loop(1);
  Pipe pipe(loop);
  pipe.read->set_read_deadline(std::chrono::steady_clock::now());
  EXPECT_EQ(run(loop, read_until_end(*pipe.read)).error().code(), Code::kDeadlineExceeded);
}

TEST(FdStream, AClosedPtyIsTheEnd) {
  boost::asio::io_context loop(1);
  UniqueFd master(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(master.valid());
  ASSERT_EQ(::grantpt(master.get()), 0);
  ASSERT_EQ(::unlockpt(master.get()), 0);
  UniqueFd slave(::open(::ptsname(master.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  ASSERT_TRUE(slave.valid());
  ASSERT_EQ(::write(slave.get(), "abc", 3), 3);
  slave.reset();
  FdStream stream(loop.get_executor(), std::move(master));
  const auto received = run(loop, read_until_end(stream));
  ASSERT_TRUE(received) << received.error().message();
  EXPECT_EQ(*received, "abc");
}

TEST(FdStream, APlainFileCannotBeWaitedFor) {
  boost::asio::io_context loop(1);
  UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  FdStream stream(loop.get_executor(), std::move(file));
  EXPECT_FALSE(run(loop, stream.wait_readable()));
}

}  // namespace
}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tcp_stream.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

#include <boost/asio/io_context.hpp>

#include "net/event_loops.h"
#include "net/listener.h"
#include "net/task_group.h"
#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

using testing::make_socket_pair;
using testing::make_stream_pair;
using testing::run;

Task<Result<std::string>> read_until_end(Stream& stream) {
  std::string all;
  char buffer[4096];
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await stream.read_some(buffer));
    if (count == 0) co_return all;
    all.append(buffer, count);
  }
}

Task<void> write_and_end(Stream& stream, std::string text, int pieces) {
  std::vector<std::string_view> views(static_cast<size_t>(pieces), text);
  views.insert(views.begin(), "");
  EXPECT_TRUE(co_await stream.write(std::span<const std::string_view>(views)));
  stream.shutdown_write();
}

TEST(TcpStream, CarriesManyPiecesThroughSmallBuffers) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  const std::string text(100'000, 'x');
  spawn(loop, write_and_end(*one, text, 50));
  const auto received = run(loop, read_until_end(*other));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->size(), 50u * text.size());
}

TEST(TcpStream, ConnectsAcceptsAndNamesThePeer) {
  boost::asio::io_context loop(1);
  for (const std::string address : {"127.0.0.1", "::1"}) {
    auto listener = make_listener(address, 0);
    ASSERT_TRUE(listener) << listener.error().message();
    const uint16_t port = local_port(*listener).value();
    auto fd = start_connect(address, port);
    ASSERT_TRUE(fd);
    auto stream = run(loop, finish_connect(std::move(*fd), std::chrono::seconds(10)));
    ASSERT_TRUE(stream) << stream.error().message();
    const std::string host = address == "::1" ? "[::1]" : address;
    EXPECT_EQ((*stream)->peer_address(), host + ":" + std::to_string(port));
  }
}

TEST(TcpStream, ARefusedConnectionKeepsItsErrno) {
  boost::asio::io_context loop(1);
  uint16_t port = 0;
  {
    auto listener = make_listener("127.0.0.1", 0);
    port = local_port(*listener).value();
  }
  auto fd = start_connect("127.0.0.1", port);
  int error = 0;
  if (fd) {
    const auto stream = run(loop, finish_connect(std::move(*fd), std::chrono::seconds(10)));
    ASSERT_FALSE(stream);
    EXPECT_EQ(stream.error().code(), Code::kUnavailable);
    error = stream.error().error_number();
  } else {
    error = fd.error().error_number();
  }
  EXPECT_EQ(error, ECONNREFUSED);
}

TEST(Listener, RefusesNamesAndTakenPorts) {
  EXPECT_EQ(make_listener("localhost", 0).error().code(), Code::kInvalidArgument);
  auto first = make_listener("127.0.0.1", 0, ReusePort::kYes);
  const uint16_t port = local_port(*first).value();
  EXPECT_TRUE(make_listener("127.0.0.1", port, ReusePort::kYes));
  EXPECT_EQ(make_listener("127.0.0.1", port).error().error_number(), EADDRINUSE);
}

Task<Result<size_t>> read_some(Stream& stream) {
  char buffer[16];
  co_return co_await stream.read_some(buffer);
}

Task<Result<void>> write_for_ever(Stream& stream) {
  const std::string text(100'000, 'x');
  for (;;) ALCOVE_CO_TRY(co_await stream.write(text));
}

TEST(TcpStream, DeadlinesEndReadsAndWritesApart) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  const auto soon = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  // A write waits with a late deadline while a read's early one passes.
  one->set_write_deadline(soon + std::chrono::milliseconds(20));
  one->set_read_deadline(soon);
  Code write_code = Code::kUnknown;
  TaskGroup group(loop.get_executor());
  const auto writer = [](Stream& stream, Code& code) -> Task<void> {
    code = (co_await write_for_ever(stream)).error().code();
  };
  group.spawn(writer(*one, write_code));
  EXPECT_EQ(run(loop, read_some(*one)).error().code(), Code::kDeadlineExceeded);
  run(loop, group.join());
  EXPECT_EQ(write_code, Code::kDeadlineExceeded);
  EXPECT_GE(std::chrono::steady_clock::now(), soon + std::chrono::milliseconds(20));
  // The stream goes on when the deadline is lifted.
  one->set_read_deadline(std::nullopt);
  EXPECT_EQ(::send(other->native_fd(), "x", 1, 0), 1);
  EXPECT_EQ(run(loop, read_some(*one)).value(), 1u);
}

TEST(TcpStream, ALaterDeadlineReplacesAnEarlierOne) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  const auto start = std::chrono::steady_clock::now();
  one->set_read_deadline(start + std::chrono::milliseconds(5));
  EXPECT_FALSE(run(loop, read_some(*one)));
  one->set_read_deadline(start + std::chrono::milliseconds(40));
  EXPECT_EQ(run(loop, read_some(*one)).error().code(), Code::kDeadlineExceeded);
  EXPECT_GE(std::chrono::steady_clock::now(), start + std::chrono::milliseconds(40));
}

template <typename Action>
Code end_of_read_after(Action action) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  Code code = Code::kUnknown;
  const auto reader = [](Stream& stream, Code& seen) -> Task<void> {
    const auto count = co_await read_some(stream);
    if (!count) seen = count.error().code();
  };
  TaskGroup group(loop.get_executor());
  group.spawn(reader(*one, code));
  loop.poll();
  action(*one, group);
  run(loop, group.join());
  return code;
}

TEST(TcpStream, CloseCancelAndTaskCancelationEndARead) {
  const auto close = [](Stream& stream, TaskGroup&) { stream.close(); };
  const auto cancel = [](Stream& stream, TaskGroup&) { stream.cancel_read(); };
  const auto stop = [](Stream&, TaskGroup& group) { group.cancel(); };
  EXPECT_EQ(end_of_read_after(close), Code::kCanceled);
  EXPECT_EQ(end_of_read_after(cancel), Code::kCanceled);
  EXPECT_EQ(end_of_read_after(stop), Code::kCanceled);
}

TEST(TcpStream, ADeadlineIsAlsoForAReadUnderWay) {
  const auto limit = [](Stream& stream, TaskGroup&) {
    stream.set_read_deadline(std::chrono::steady_clock::now() + std::chrono::milliseconds(5));
  };
  EXPECT_EQ(end_of_read_after(limit), Code::kDeadlineExceeded);
}

TEST(TcpStream, AStreamMayDieBeforeItsReader) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  Code code = Code::kUnknown;
  const auto reader = [](Stream& stream, Code& seen) -> Task<void> {
    seen = (co_await stream.wait_readable()).error().code();
  };
  spawn(loop, reader(*one, code));
  loop.poll();
  one.reset();
  loop.poll();
  EXPECT_EQ(code, Code::kCanceled);
}

TEST(TcpStream, OperationsAfterCloseAreCanceled) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  one->close();
  one->close();
  EXPECT_EQ(run(loop, read_some(*one)).error().code(), Code::kCanceled);
  EXPECT_EQ(run(loop, one->write("x")).error().code(), Code::kCanceled);
  EXPECT_EQ(run(loop, one->wait_readable()).error().code(), Code::kCanceled);
}

TEST(TcpStream, WriteToAGonePeerIsUnavailable) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  other.reset();
  EXPECT_EQ(run(loop, one->write("x")).error().code(), Code::kUnavailable);
}

TEST(TcpStream, AbortResetsTheConnection) {
  boost::asio::io_context loop(1);
  auto listener = make_listener("127.0.0.1", 0);
  auto fd = start_connect("127.0.0.1", local_port(*listener).value());
  auto client = run(loop, finish_connect(std::move(*fd), std::chrono::seconds(10)));
  TcpStream server(loop.get_executor(), UniqueFd(::accept(listener->get(), nullptr, nullptr)));
  server.abort();
  const auto count = run(loop, read_some(**client));
  ASSERT_FALSE(count);
  EXPECT_EQ(count.error().error_number(), ECONNRESET);
}

Task<void> read_all_the_time(Stream& stream, int& reads) {
  char buffer[1];
  while (co_await stream.read_some(buffer)) ++reads;
}

TEST(TcpStream, ABusyStreamLeavesTurnsToOthers) {
  boost::asio::io_context loop(1);
  auto [one, other] = make_stream_pair(loop);
  const std::string text(1000, 'x');
  ASSERT_EQ(::send(other->native_fd(), text.data(), text.size(), 0), 1000);
  int reads = 0;
  spawn(loop, read_all_the_time(*one, reads));
  loop.poll_one();
  run(loop, yield());
  EXPECT_LT(reads, 100);
}

}  // namespace
}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/fd_wait.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "net/event_loops.h"
#include "net/listener.h"
#include "net/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "net/timer.h"

namespace alcove::net {
namespace {

using namespace std::chrono_literals;
using Direction = FdWait::Direction;

// A socket whose peer can take no more; a buffer of what was read makes it ready again.
void fill(int fd) {
  std::array<char, 4096> data{};
  while (::send(fd, data.data(), data.size(), MSG_DONTWAIT) > 0) {
  }
}
void drain(int fd) {
  std::array<char, 4096> data;
  while (::recv(fd, data.data(), data.size(), MSG_DONTWAIT) > 0) {
  }
}

Task<void> wait_to_write(std::shared_ptr<FdWait> wait) {
  (void)co_await wait->wait(Direction::kWrite);
}

// The loop notices that `given_up` is ready, and before it says so the next descriptor has its
// place.
Task<Result<void>> connect_in_its_place(std::shared_ptr<FdWait> given_up, int peer, int port) {
  drain(peer);
  co_await yield();
  given_up->close();
  auto socket = start_connect("127.0.0.1", static_cast<uint16_t>(port));
  if (!socket) co_return fail(std::move(socket).error());
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto connecting = std::make_shared<FdWait>(executor, std::move(*socket));
  co_return co_await connecting->wait_connected(std::chrono::steady_clock::now() + 300ms);
}

TEST(FdWait, AConnectionUnderWayIsNotTakenForMade) {
  boost::asio::io_context loop(1);
  const auto listener = make_listener("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const int port = *local_port(*listener);
  // Nobody accepts, and the queue is full soon.
  ASSERT_EQ(::listen(listener->get(), 0), 0);
  std::vector<UniqueFd> crowd;
  for (int i = 0; i < 4; ++i)
    crowd.push_back(*start_connect("127.0.0.1", static_cast<uint16_t>(port)));
  auto [one, other] = testing::make_socket_pair();
  fill(one.get());
  const auto full = std::make_shared<FdWait>(loop.get_executor(), std::move(one));
  spawn(loop, wait_to_write(full));
  loop.poll();
  const auto connected = testing::run(loop, connect_in_its_place(full, other.get(), port));
  ASSERT_FALSE(connected);
  EXPECT_EQ(connected.error().code(), Code::kDeadlineExceeded) << connected.error().message();
}

}  // namespace
}  // namespace alcove::net

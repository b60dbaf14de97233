// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/fd_wait.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "net/timer.h"

namespace alcove::net {

namespace asio = boost::asio;

FdWait::FdWait(const asio::any_io_executor& executor, UniqueFd fd)
    : descriptor_(executor), timer_(executor) {
  boost::system::error_code error;
  descriptor_.assign(fd.get(), error);
  if (error) {
    register_error_ = error.value();
    closed_ = true;
    return;
  }
  (void)fd.release();
  // By asio, which would do it once more before the first wait.
  descriptor_.non_blocking(true, error);
}

Task<Result<void>> FdWait::wait(Direction direction) {
  const auto self = shared_from_this();
  Side& side = self->side(direction);
  self->without_wait_ = 0;
  for (;;) {
    if (register_error_ != 0) co_return fail_errno(register_error_, "watch a descriptor");
    if (closed_) co_return fail(Code::kCanceled, "the stream is closed");
    if (side.deadline && std::chrono::steady_clock::now() >= *side.deadline) {
      co_return fail(Code::kDeadlineExceeded, "the peer was too slow");
    }
    side.waiting = true;
    side.expired = false;
    side.canceled = false;
    arm_timer();
    const auto [error] = co_await descriptor_.async_wait(
        direction == Direction::kRead ? asio::posix::descriptor_base::wait_read
                                      : asio::posix::descriptor_base::wait_write,
        asio::as_tuple(asio::use_awaitable));
    side.waiting = false;
    if (!error) co_return Result<void>();
    if (closed_ || side.canceled) co_return fail(Code::kCanceled, "the stream is closed");
    if (side.expired) co_return fail(Code::kDeadlineExceeded, "the peer was too slow");
    if (error != asio::error::operation_aborted) {
      co_return fail_errno(error.value(), "wait for a descriptor");
    }
    const auto task = co_await asio::this_coro::cancellation_state;
    if (task.cancelled() != asio::cancellation_type::none) {
      co_return fail(Code::kCanceled, "the task is canceled");
    }
    // The other direction was canceled: asio cancels both.
  }
}

Task<Result<void>> FdWait::wait_connected(TimePoint deadline) {
  const auto self = shared_from_this();
  for (;;) {
    set_deadline(Direction::kWrite, deadline);
    auto ready = co_await wait(Direction::kWrite);
    set_deadline(Direction::kWrite, std::nullopt);
    if (!ready) co_return ready;
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(fd(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) co_return fail_errno(error, "connect");
    sockaddr_storage peer;
    size = sizeof peer;
    // Without a peer or an error it is still under way.
    if (::getpeername(fd(), reinterpret_cast<sockaddr*>(&peer), &size) == 0) co_return ready;
    if (errno != ENOTCONN) co_return fail_errno(errno, "connect");
  }
}

Task<void> FdWait::give_turn() {
  without_wait_ = 0;
  return yield();
}

void FdWait::cancel(Direction direction) {
  if (closed_ || !side(direction).waiting) return;
  side(direction).canceled = true;
  boost::system::error_code ignored;
  descriptor_.cancel(ignored);
}

void FdWait::close() {
  if (closed_) return;
  closed_ = true;
  timer_.cancel();
  boost::system::error_code ignored;
  descriptor_.close(ignored);
}

void FdWait::arm_timer() {
  std::optional<TimePoint> earliest;
  for (const Side* side : {&read_, &write_}) {
    if (!side->waiting || !side->deadline) continue;
    earliest = earliest ? std::min(*earliest, *side->deadline) : *side->deadline;
  }
  if (!earliest || (timer_at_ && *timer_at_ <= *earliest)) return;
  timer_at_ = earliest;
  timer_.expires_at(*earliest);
  const unsigned generation = ++timer_generation_;
  timer_.async_wait([weak = weak_from_this(), generation](boost::system::error_code error) {
    const auto self = weak.lock();
    if (error || !self || generation != self->timer_generation_) return;
    self->timer_at_.reset();
    self->timer_fired();
  });
}

void FdWait::timer_fired() {
  if (closed_) return;
  const TimePoint now = std::chrono::steady_clock::now();
  bool any = false;
  for (Side* side : {&read_, &write_}) {
    if (side->waiting && side->deadline && *side->deadline <= now) {
      side->expired = true;
      any = true;
    }
  }
  if (any) {
    boost::system::error_code ignored;
    descriptor_.cancel(ignored);
  }
  arm_timer();
}

}  // namespace alcove::net

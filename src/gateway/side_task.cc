// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/side_task.h"

#include <utility>

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/assert.h"
#include "net/event_loops.h"

namespace alcove::gateway {

namespace asio = boost::asio;

void SideTask::start(Task<void> task) {
  ALCOVE_ASSERT(!running_);
  running_ = true;
  asio::co_spawn(
      executor_, std::move(task),
      asio::bind_cancellation_slot(cancel_.slot(), [this](const std::exception_ptr& failure) {
        net::log_task_failure(failure);
        running_ = false;
        if (ended_) ended_->notify_all();
      }));
}

Task<void> SideTask::join() {
  if (running_ && !ended_) ended_.emplace(executor_);
  while (running_) co_await ended_->wait();
}

Task<void> SideTask::stop() {
  if (!running_) co_return;
  cancel_.emit(asio::cancellation_type::terminal);
  co_await join();
}

void FirstRead::begin(http::BodyReader& body, std::span<char> buffer) {
  ready_ = false;
  task_.start(read(body, buffer));
}

Task<void> FirstRead::read(http::BodyReader& body, std::span<char> buffer) {
  co_await asio::this_coro::throw_if_cancelled(false);
  result_ = co_await body.read(buffer);
  ready_ = true;
}

Task<Result<size_t>> FirstRead::result() {
  if (!ready_) co_await task_.join();
  if (!ready_) co_return fail(Code::kCanceled, "the read was canceled");
  co_return result_;
}

}  // namespace alcove::gateway

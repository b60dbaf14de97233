// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <optional>
#include <utility>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "base/result.h"
#include "http/exchange.h"
#include "net/notifier.h"
#include "net/task.h"
#include "net/task_group.h"

namespace alcove::agent {

using ClientDeadline = std::optional<std::chrono::steady_clock::time_point>;

namespace client_wait {

template <typename T>
struct Race {
  explicit Race(const boost::asio::any_io_executor& executor) : changed(executor) {}

  std::optional<Result<T>> outcome;
  bool disconnected = false;
  net::Notifier changed;
};

template <typename T>
Task<void> work(Race<T>& race, Task<Result<T>> task) {
  race.outcome.emplace(co_await std::move(task));
  race.changed.notify_all();
}

template <typename T>
Task<void> watch(Race<T>& race, http::Exchange& exchange) {
  co_await exchange.wait_disconnect();
  race.disconnected = true;
  race.changed.notify_all();
}

}  // namespace client_wait

// The task's outcome, but no longer than somebody waits for it: kCanceled if the client leaves
// before, kDeadlineExceeded if the deadline passes; the task is canceled then. Nothing else may
// read the request meanwhile.
template <typename T>
Task<Result<T>> while_client_waits(http::Exchange& exchange, ClientDeadline deadline,
                                   Task<Result<T>> task) {
  namespace this_coro = boost::asio::this_coro;
  using Clock = std::chrono::steady_clock;
  const auto executor = co_await this_coro::executor;
  // A cancelation must not end this task before its children, which use what is here.
  const bool throws = co_await this_coro::throw_if_cancelled();
  co_await this_coro::throw_if_cancelled(false);
  const auto state = co_await this_coro::cancellation_state;
  client_wait::Race<T> race(executor);
  net::TaskGroup group(executor);
  group.spawn(client_wait::work(race, std::move(task)));
  group.spawn(client_wait::watch(race, exchange));
  const auto end = deadline.value_or(Clock::time_point::max());
  while (!race.outcome && !race.disconnected && Clock::now() < end &&
         state.cancelled() == boost::asio::cancellation_type::none) {
    if (deadline) {
      (void)co_await race.changed.wait_until(end);
    } else {
      co_await race.changed.wait();
    }
  }
  Result<T> outcome = fail(Code::kCanceled, "the client is gone");
  if (race.outcome) {
    outcome = *std::move(race.outcome);
  } else if (!race.disconnected && Clock::now() >= end) {
    outcome = fail(Code::kDeadlineExceeded, "the deadline has passed");
  }
  co_await group.stop();
  // Done after all, in the same moment.
  if (!outcome && race.outcome && *race.outcome) outcome = *std::move(race.outcome);
  co_await this_coro::throw_if_cancelled(throws);
  co_return outcome;
}

}  // namespace alcove::agent

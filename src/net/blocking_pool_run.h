// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

// The template part of net/blocking_pool.h, which includes it.

#include <exception>

#include <boost/asio/steady_timer.hpp>

#include "net/blocking_pool.h"
#include "net/loop_mailbox.h"

namespace alcove::net {

// Wakes one task of a loop from another thread, once.
class LoopSignal {
 public:
  explicit LoopSignal(const boost::asio::any_io_executor& executor);

  // Any thread; harmless when the loop or the waiting task is gone.
  static void set(const std::shared_ptr<LoopSignal>& signal);
  // On the loop: true when set, false if the waiting task was canceled before.
  static Task<bool> wait(std::shared_ptr<LoopSignal> signal);

 private:
  struct Wait;
  std::shared_ptr<LoopMailbox> mailbox_;
  // Both are touched on the loop only.
  bool set_ = false;
  Wait* waiting_ = nullptr;
};

template <typename Function>
auto BlockingPool::run(Function function) -> Task<std::invoke_result_t<Function>> {
  using Outcome = std::invoke_result_t<Function>;
  struct Job {
    std::optional<Function> function;
    std::optional<Outcome> outcome;
  };
  auto job = std::make_shared<Job>();
  job->function.emplace(std::move(function));
  const auto done = std::make_shared<LoopSignal>(co_await boost::asio::this_coro::executor);
  std::function<void()> work = [job, done] {
    try {
      job->outcome.emplace((*job->function)());
    } catch (const std::exception& failure) {
      job->outcome.emplace(fail(Code::kInternal, failure.what()));
    }
    job->function.reset();
    LoopSignal::set(done);
  };
  ALCOVE_CO_TRY(submit(std::move(work)));
  if (!co_await LoopSignal::wait(done)) co_return fail(Code::kCanceled, "canceled");
  co_return std::move(*job->outcome);
}

template <typename T>
std::shared_ptr<T> BlockingPool::hold(T value) {
  return std::shared_ptr<T>(new T(std::move(value)), [pool = std::weak_ptr<Impl>(impl_)](T* held) {
    finish(pool, [held] { delete held; });
  });
}

}  // namespace alcove::net

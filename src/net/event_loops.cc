// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/event_loops.h"

#include <pthread.h>

#include <exception>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>

#include "base/log.h"
#include "base/strings.h"

namespace alcove::net {

EventLoops::EventLoops(size_t count) {
  for (size_t i = 0; i < count; ++i) {
    loops_.push_back(std::make_unique<Loop>(/*concurrency_hint=*/1));
    guards_.push_back(boost::asio::make_work_guard(*loops_.back()));
  }
}

EventLoops::~EventLoops() { stop(); }

void EventLoops::start() {
  if (!threads_.empty()) return;
  for (size_t i = 0; i < loops_.size(); ++i) {
    threads_.emplace_back([this, i] {
      pthread_setname_np(pthread_self(), cat("loop-", i).c_str());
      loops_[i]->run();
    });
  }
}

void EventLoops::stop() {
  for (auto& loop : loops_) loop->stop();
  for (auto& thread : threads_) thread.join();
  threads_.clear();
  for (auto& loop : loops_) loop->destroy_tasks();
}

void spawn(boost::asio::io_context& loop, Task<void> task) {
  spawn(loop.get_executor(), std::move(task));
}

void spawn(const boost::asio::any_io_executor& executor, Task<void> task) {
  boost::asio::co_spawn(executor, std::move(task), log_task_failure);
}

void log_task_failure(const std::exception_ptr& failure) {
  if (!failure) return;
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    // What a canceled task ends with.
    if (error.code() == boost::asio::error::operation_aborted) return;
    log_error(cat("a task failed: ", error.what()));
  } catch (const std::exception& error) {
    log_error(cat("a task failed: ", error.what()));
  } catch (...) {
    log_error("a task failed: unknown exception");
  }
}

}  // namespace alcove::net

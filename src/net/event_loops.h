// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>

#include "net/task.h"

namespace alcove::net {

// One io_context per core, each run by one thread. Objects belong to the loop that made them;
// between loops only messages pass (boost::asio::post).
class EventLoops {
 public:
  explicit EventLoops(size_t count);
  ~EventLoops();

  size_t size() const { return loops_.size(); }
  boost::asio::io_context& loop(size_t index) { return *loops_[index]; }

  void start();
  // Ends the loops' run(), joins their threads and destroys the tasks that are left, so that what
  // those refer to need not outlive this call. Idempotent; not from a loop.
  void stop();

 private:
  using WorkGuard = boost::asio::executor_work_guard<boost::asio::io_context::executor_type>;
  // A loop whose tasks can be destroyed before itself.
  class Loop : public boost::asio::io_context {
   public:
    using io_context::io_context;
    void destroy_tasks() { shutdown(); }
  };
  std::vector<std::unique_ptr<Loop>> loops_;
  // Keep run() going while a loop has nothing to do.
  std::vector<WorkGuard> guards_;
  std::vector<std::thread> threads_;
};

// Starts a task on a loop. An exception that leaves it is logged, not lost.
void spawn(boost::asio::io_context& loop, Task<void> task);
void spawn(const boost::asio::any_io_executor& executor, Task<void> task);

// The completion of a task root: logs what a task threw, unless it was canceled.
void log_task_failure(const std::exception_ptr& failure);

}  // namespace alcove::net

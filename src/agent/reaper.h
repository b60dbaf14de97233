// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <memory>
#include <optional>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "net/fd_stream.h"
#include "net/task.h"

namespace alcove::agent {

// Waits for every child that ends: the commands and, because the agent is pid 1, all orphans of the
// sandbox. There is no other place that waits, so a pid is never reused under our hands while its
// process is watched. Belongs to one loop.
class ChildReaper {
 public:
  using Callback = std::function<void(int wait_status)>;

  // SIGCHLD must be blocked in all threads. An error if the kernel gives no signalfd.
  static Result<std::unique_ptr<ChildReaper>> create(const boost::asio::any_io_executor& executor);

  // A process is started on another thread, so it may end before its pid is known here: from now
  // on, and until watch() or forget_start() is called as often, ends of unknown pids are kept.
  void expect_start() { ++expected_; }
  void forget_start();
  // Calls `callback` when the process ends; at once if it has ended already.
  void watch(pid_t pid, Callback callback);

  // Waits for all that have ended by now. run() does so by itself, but perhaps a moment later.
  void collect();

  // Runs for ever.
  Task<void> run();

 private:
  explicit ChildReaper(net::FdStream signals) : signals_(std::move(signals)) {}

  net::FdStream signals_;
  std::map<pid_t, Callback> watched_;
  std::map<pid_t, int> early_;
  size_t expected_ = 0;
};

}  // namespace alcove::agent

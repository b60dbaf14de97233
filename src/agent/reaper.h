// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

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

  // A process is started on another thread, so it may end before its start is known here.
  struct Start {
    // Set by the kernel before the process runs, see spawn().
    std::atomic<pid_t> pid = 0;
    std::optional<int> wait_status;
  };
  // The end of the process that gets this start's pid is kept until watch() or forget_start().
  std::shared_ptr<Start> expect_start();
  void forget_start(const std::shared_ptr<Start>& start);
  // Calls `callback` when the process ends; at once if it has ended already.
  void watch(const std::shared_ptr<Start>& start, Callback callback);
  // The same for one that was started on the loop's thread, right before.
  void watch(pid_t pid, Callback callback) { watched_[pid] = std::move(callback); }

  // Waits for all that have ended by now. run() does so by itself, but perhaps a moment later.
  void collect();

  // Runs for ever.
  Task<void> run();

 private:
  explicit ChildReaper(net::FdStream signals) : signals_(std::move(signals)) {}

  net::FdStream signals_;
  std::map<pid_t, Callback> watched_;
  std::vector<std::shared_ptr<Start>> starts_;
};

}  // namespace alcove::agent

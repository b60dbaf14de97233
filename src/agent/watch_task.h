// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "agent/tree_watch.h"
#include "net/blocking_pool.h"
#include "net/fd_stream.h"
#include "net/notifier.h"
#include "net/task.h"

namespace alcove::agent {

// A TreeWatch on a loop: the waiting is done here, what blocks on the pool's threads, so that a
// file system that hangs stops this watch only.
class WatchTask {
 public:
  // Errors as of TreeWatch::open().
  static Task<Result<std::unique_ptr<WatchTask>>> open(net::BlockingPool& pool, std::string path,
                                                       WatchOptions options,
                                                       std::shared_ptr<const Accounts> accounts);

  // Until there is something to take. One caller at a time.
  Task<Result<void>> wait();
  // A portion of what is there now, perhaps nothing. Callers take turns, in the order of the
  // events; what a canceled one would have got is lost.
  Task<Result<std::vector<FilesystemEvent>>> take();

 private:
  // The watch; shared with a job that is under way when this is destroyed.
  struct Shared;

  WatchTask(const boost::asio::any_io_executor& executor, net::BlockingPool& pool,
            std::shared_ptr<Shared> shared, UniqueFd ready);

  net::BlockingPool& pool_;
  std::shared_ptr<Shared> shared_;
  // A copy of the watch's descriptor, only waited on.
  net::FdStream ready_;
  bool taking_ = false;
  net::Notifier taken_;
};

}  // namespace alcove::agent

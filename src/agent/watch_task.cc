// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_task.h"

#include <fcntl.h>

#include <cerrno>
#include <mutex>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/defer.h"

namespace alcove::agent {

struct WatchTask::Shared {
  std::mutex mutex;
  std::unique_ptr<TreeWatch> watch;
};

WatchTask::WatchTask(const boost::asio::any_io_executor& executor, net::BlockingPool& pool,
                     std::unique_ptr<TreeWatch> watch, UniqueFd ready)
    : pool_(pool),
      shared_(std::make_shared<Shared>()),
      ready_(executor, std::move(ready)),
      taken_(executor) {
  shared_->watch = std::move(watch);
}

Task<Result<std::unique_ptr<WatchTask>>> WatchTask::open(net::BlockingPool& pool, std::string path,
                                                         WatchOptions options,
                                                         std::shared_ptr<const Accounts> accounts) {
  auto job = [path = std::move(path), options, accounts = std::move(accounts)] {
    return TreeWatch::open(path, options, accounts);
  };
  ALCOVE_CO_TRY_ASSIGN(std::unique_ptr<TreeWatch> watch, co_await pool.run(std::move(job)));
  UniqueFd ready(::fcntl(watch->fd(), F_DUPFD_CLOEXEC, 0));
  if (!ready.valid()) co_return fail_errno(errno, "watch descriptor");
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return std::unique_ptr<WatchTask>(
      new WatchTask(executor, pool, std::move(watch), std::move(ready)));
}

Task<Result<std::vector<FilesystemEvent>>> WatchTask::take() {
  while (taking_) co_await taken_.wait();
  taking_ = true;
  // Also when a canceled task leaves by an exception: the next one would wait for ever.
  const Defer next_turn([this] {
    taking_ = false;
    taken_.notify_all();
  });
  auto job = [shared = shared_] {
    // A canceled task leaves its job behind.
    const std::lock_guard lock(shared->mutex);
    return shared->watch->take();
  };
  co_return co_await pool_.run(std::move(job));
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_task.h"

#include <fcntl.h>

#include <cerrno>
#include <utility>

#include <boost/asio/this_coro.hpp>

namespace alcove::agent {

WatchTask::WatchTask(const boost::asio::any_io_executor& executor, net::BlockingPool& pool,
                     std::shared_ptr<TreeWatch> watch, UniqueFd ready)
    : pool_(pool), watch_(std::move(watch)), ready_(executor, std::move(ready)), taken_(executor) {}

Task<Result<std::unique_ptr<WatchTask>>> WatchTask::open(net::BlockingPool& pool, std::string path,
                                                         WatchOptions options,
                                                         std::shared_ptr<const Accounts> accounts) {
  auto job = [path = std::move(path), options, accounts = std::move(accounts)] {
    return TreeWatch::open(path, options, accounts);
  };
  ALCOVE_CO_TRY_ASSIGN(std::shared_ptr<TreeWatch> watch, co_await pool.run(std::move(job)));
  UniqueFd ready(::fcntl(watch->fd(), F_DUPFD_CLOEXEC, 0));
  if (!ready.valid()) co_return fail_errno(errno, "watch descriptor");
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return std::unique_ptr<WatchTask>(
      new WatchTask(executor, pool, std::move(watch), std::move(ready)));
}

Task<Result<std::vector<FilesystemEvent>>> WatchTask::take() {
  while (taking_) co_await taken_.wait();
  taking_ = true;
  auto job = [watch = watch_] { return watch->take(); };
  auto events = co_await pool_.run(std::move(job));
  taking_ = false;
  taken_.notify_all();
  co_return events;
}

}  // namespace alcove::agent

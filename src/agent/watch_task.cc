// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/watch_task.h"

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "base/defer.h"

namespace alcove::agent {

struct WatchTask::Shared {
  explicit Shared(std::unique_ptr<TreeWatch> opened) : watch(std::move(opened)) {}

  std::mutex mutex;
  std::unique_ptr<TreeWatch> watch;
  // Of the watch, for the loop.
  std::atomic<bool> has_more = false;
};

WatchTask::WatchTask(const boost::asio::any_io_executor& executor, net::BlockingPool& pool,
                     std::shared_ptr<Shared> shared, UniqueFd ready)
    : pool_(pool),
      shared_(std::move(shared)),
      ready_(executor, std::move(ready)),
      taken_(executor) {}

Task<Result<std::unique_ptr<WatchTask>>> WatchTask::open(net::BlockingPool& pool, std::string path,
                                                         WatchOptions options,
                                                         std::shared_ptr<const Accounts> accounts) {
  auto job = [&pool, path = std::move(path), options,
              accounts = std::move(accounts)]() -> Result<std::shared_ptr<Shared>> {
    ALCOVE_TRY_ASSIGN(auto watch, TreeWatch::open(path, options, accounts));
    // The kernel takes its time to close a watch: 5 to 20 ms, more with many directories.
    const auto held = pool.hold(std::make_unique<Shared>(std::move(watch)));
    return std::shared_ptr<Shared>(held, held->get());
  };
  ALCOVE_CO_TRY_ASSIGN(auto shared, co_await pool.run(std::move(job)));
  UniqueFd ready(::fcntl(shared->watch->fd(), F_DUPFD_CLOEXEC, 0));
  if (!ready.valid()) co_return fail_errno(errno, "watch descriptor");
  const auto executor = co_await boost::asio::this_coro::executor;
  co_return std::unique_ptr<WatchTask>(
      new WatchTask(executor, pool, std::move(shared), std::move(ready)));
}

Task<Result<void>> WatchTask::wait() {
  if (shared_->has_more) co_return Result<void>();
  co_return co_await ready_.wait_readable();
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
    auto events = shared->watch->take();
    shared->has_more = shared->watch->has_more();
    return events;
  };
  co_return co_await pool_.run(std::move(job));
}

}  // namespace alcove::agent

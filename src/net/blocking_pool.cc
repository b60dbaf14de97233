// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/blocking_pool.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <system_error>
#include <thread>

#include <boost/asio/as_tuple.hpp>

#include "base/log.h"
#include "base/strings.h"

namespace alcove::net {

namespace asio = boost::asio;

namespace {

// An idle thread ends after this time, so that a quiet program has none.
constexpr std::chrono::seconds kIdleThreadTime{10};
// Jobs that wait this long without any job ending get the spare threads.
constexpr std::chrono::milliseconds kStuckTime{200};

}  // namespace

struct BlockingPool::Impl : std::enable_shared_from_this<Impl> {
  Impl(std::string pool_name, size_t threads_limit, size_t queue_limit, size_t spares_limit)
      : name(std::move(pool_name)),
        max_threads(threads_limit),
        max_queued(queue_limit),
        spare_threads(spares_limit) {}

  const std::string name;
  const size_t max_threads;
  const size_t max_queued;
  const size_t spare_threads;

  std::mutex mutex;
  std::condition_variable work_arrived;
  std::condition_variable thread_ended;
  std::deque<std::function<void()>> queue;
  size_t threads = 0;
  size_t idle = 0;
  // Of jobs that ended.
  uint64_t ended = 0;
  bool watched = false;
  bool stopping = false;

  // With the mutex held.
  Result<void> enqueue(std::function<void()>& job);
  void run_jobs();
  void watch();

  // The pool that the current thread belongs to.
  static thread_local const Impl* of_this_thread;
};

thread_local const BlockingPool::Impl* BlockingPool::Impl::of_this_thread = nullptr;

BlockingPool::BlockingPool(std::string name, size_t max_threads, size_t max_queued,
                           size_t spare_threads)
    : impl_(std::make_shared<Impl>(std::move(name), max_threads, max_queued, spare_threads)) {}

BlockingPool::~BlockingPool() {
  std::unique_lock lock(impl_->mutex);
  impl_->stopping = true;
  impl_->work_arrived.notify_all();
  impl_->thread_ended.notify_all();
  impl_->thread_ended.wait(lock, [this] { return impl_->threads == 0; });
}

Result<void> BlockingPool::submit(std::function<void()> job) {
  const std::lock_guard lock(impl_->mutex);
  // Idle threads each take one job from the queue, so those do not count as waiting.
  if (impl_->queue.size() >= impl_->max_queued + impl_->idle) {
    return fail(Code::kResourceExhausted, cat("too many ", impl_->name, " jobs are waiting"));
  }
  return impl_->enqueue(job);
}

void BlockingPool::finish(const std::weak_ptr<Impl>& pool, std::function<void()> job) {
  const auto impl = pool.lock();
  if (impl && Impl::of_this_thread != impl.get()) {
    const std::lock_guard lock(impl->mutex);
    if (impl->enqueue(job)) return;
  }
  job();
}

// Leaves the job where it is if it cannot be run.
Result<void> BlockingPool::Impl::enqueue(std::function<void()>& job) {
  if (stopping) return fail(Code::kResourceExhausted, cat("there are no ", name, " jobs any more"));
  if (queue.size() >= idle && threads < max_threads) {
    try {
      // Detached: the destructor waits for the count of threads, and each keeps the state alive.
      std::thread([impl = shared_from_this()] { impl->run_jobs(); }).detach();
      ++threads;
    } catch (const std::system_error& failure) {
      if (threads == 0) {
        return fail(Code::kResourceExhausted, cat("start a thread: ", failure.what()));
      }
    }
  }
  queue.push_back(std::move(job));
  work_arrived.notify_one();
  if (spare_threads > 0 && idle == 0 && threads >= max_threads && !watched) {
    try {
      std::thread([impl = shared_from_this()] { impl->watch(); }).detach();
      watched = true;
      ++threads;
    } catch (const std::system_error& failure) {
      log_error(cat("cannot watch the jobs of ", name, ": ", failure.what()));
    }
  }
  return {};
}

// Lives while jobs wait. It counts as a thread, so that the destructor waits for it.
void BlockingPool::Impl::watch() {
  std::unique_lock lock(mutex);
  while (!queue.empty() && !stopping) {
    const uint64_t before = ended;
    thread_ended.wait_for(lock, kStuckTime, [this] { return stopping; });
    if (ended != before) continue;
    const size_t limit = max_threads + spare_threads + 1;
    for (size_t wanted = queue.size(); wanted > 0 && threads < limit; --wanted) {
      try {
        std::thread([impl = shared_from_this()] { impl->run_jobs(); }).detach();
        ++threads;
      } catch (const std::system_error&) {
        break;  // as many as the machine allows
      }
    }
  }
  watched = false;
  --threads;
  thread_ended.notify_all();
}

void BlockingPool::Impl::run_jobs() {
  pthread_setname_np(pthread_self(), name.substr(0, 15).c_str());
  of_this_thread = this;
  // Signals are for the main thread.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);

  std::unique_lock lock(mutex);
  for (;;) {
    if (queue.empty() && !stopping) {
      ++idle;
      work_arrived.wait_for(lock, kIdleThreadTime, [this] { return stopping || !queue.empty(); });
      --idle;
    }
    if (queue.empty()) break;
    auto job = std::move(queue.front());
    queue.pop_front();
    lock.unlock();
    try {
      job();
    } catch (const std::exception& failure) {
      log_error(cat("a job of ", name, " failed: ", failure.what()));
    }
    job = nullptr;
    lock.lock();
    ++ended;
  }
  --threads;
  // Under the lock: the destructor must not destroy the variable before this is done.
  thread_ended.notify_all();
}

struct LoopSignal::Wait {
  Wait(std::shared_ptr<LoopSignal> used, const asio::any_io_executor& executor)
      : signal(std::move(used)), timer(executor, asio::steady_timer::time_point::max()) {
    signal->waiting_ = this;
  }
  ~Wait() { signal->waiting_ = nullptr; }
  Wait(const Wait&) = delete;
  Wait& operator=(const Wait&) = delete;

  std::shared_ptr<LoopSignal> signal;
  asio::steady_timer timer;
};

LoopSignal::LoopSignal(const asio::any_io_executor& executor)
    : mailbox_(LoopMailbox::of(executor)) {}

void LoopSignal::set(const std::shared_ptr<LoopSignal>& signal) {
  signal->mailbox_->post([signal] {
    signal->set_ = true;
    if (signal->waiting_ != nullptr) signal->waiting_->timer.cancel();
  });
}

Task<bool> LoopSignal::wait(std::shared_ptr<LoopSignal> signal) {
  Wait wait(signal, co_await asio::this_coro::executor);
  if (!signal->set_) (void)co_await wait.timer.async_wait(asio::as_tuple(asio::use_awaitable));
  co_return signal->set_;
}

}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/result.h"
#include "net/task.h"

namespace alcove::net {

// Threads for calls that block (mounts, fsync, SQLite, file systems that may hang). Bounded queue:
// submit() says kResourceExhausted when it is full.
class BlockingPool {
 public:
  // `spare_threads` more are started while jobs wait and none of the running ones comes to its
  // end: a file system that hangs holds up only those who use it.
  BlockingPool(std::string name, size_t max_threads, size_t max_queued, size_t spare_threads = 0);
  // Waits for running jobs; queued ones are run first.
  ~BlockingPool();
  BlockingPool(const BlockingPool&) = delete;
  BlockingPool& operator=(const BlockingPool&) = delete;

  // Runs `job` on a pool thread. Threads are started when needed.
  Result<void> submit(std::function<void()> job);

  // Runs `function` (returning Result<T>) on a pool thread and resumes the calling coroutine on
  // its own loop. If the pool is full: kResourceExhausted. The captured state must outlive the
  // call even when the coroutine is destroyed before (pass by value or shared_ptr).
  template <typename Function>
  auto run(Function function) -> Task<std::invoke_result_t<Function>>;

  // Shares a value whose destructor may block: it runs on a pool thread, wherever the last
  // reference goes. Only after the pool's end, or if no thread can be had, it runs there.
  template <typename T>
  std::shared_ptr<T> hold(T value);

 private:
  struct Impl;
  // Runs a job that is never refused for the length of the queue, at once if this is one of the
  // pool's threads.
  static void finish(const std::weak_ptr<Impl>& pool, std::function<void()> job);
  std::shared_ptr<Impl> impl_;
};

}  // namespace alcove::net

#include "net/blocking_pool_run.h"

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "agent/client_wait.h"
#include "agent/mount_points.h"
#include "http/exchange.h"
#include "net/blocking_pool.h"
#include "net/task.h"

namespace alcove::agent {

// Threads on which some calls to file systems run.
struct FileThreads {
  // Never null.
  net::BlockingPool* pool = nullptr;
  // A call may wait for ever, for a program or a machine that does not answer.
  bool may_hang = false;
};

// What lies on the root mount has threads of its own, so that file systems that hang, which
// everybody in a sandbox can make, never take the last one. Which threads a call needs is decided
// on the loop, right before: who mounts something in between, again and again, can still take some.
class FilePools {
 public:
  FilePools();

  // For calls that use nothing but what the path leads to.
  FileThreads at(const std::string& path);
  // For calls that also look at what is in the directory there, or at all that is below it.
  FileThreads below(const std::string& path, MountPoints::Walk walk);
  // For calls that may come across anything.
  FileThreads anywhere() { return {&mounts_pool_, /*may_hang=*/true}; }

 private:
  FileThreads on_root_mount() { return {&root_pool_, /*may_hang=*/false}; }

  net::BlockingPool root_pool_;
  net::BlockingPool mounts_pool_;
  MountPoints mount_points_;
};

// The file system calls of one request, on these threads. One that may hang is waited for as long
// as the client waits; if it has not begun by then it never does.
class FileJobs {
 public:
  FileJobs(FileThreads threads, http::Exchange& exchange, ClientDeadline deadline = {})
      : threads_(threads), exchange_(exchange), deadline_(deadline) {}

  template <typename Function>
  auto run(Function function) -> Task<std::invoke_result_t<Function>> {
    using Outcome = std::invoke_result_t<Function>;
    // One copy of the code for each kind of outcome, not for each job: it is in every sandbox.
    std::function<Outcome()> job = std::move(function);
    if (!threads_.may_hang) return threads_.pool->run(std::move(job));
    return run_while_client_waits(std::move(job));
  }

  // As BlockingPool::hold().
  template <typename T>
  std::shared_ptr<T> hold(T value) {
    return threads_.pool->hold(std::move(value));
  }

 private:
  template <typename Outcome>
  Task<Outcome> run_while_client_waits(std::function<Outcome()> function) {
    const auto is_given_up = std::make_shared<std::atomic<bool>>(false);
    std::function<Outcome()> job = [work = std::move(function), is_given_up]() -> Outcome {
      if (*is_given_up) return fail(Code::kCanceled, "nobody waits for it");
      return work();
    };
    auto outcome =
        co_await while_client_waits(exchange_, deadline_, threads_.pool->run(std::move(job)));
    *is_given_up = true;
    co_return outcome;
  }

  FileThreads threads_;
  http::Exchange& exchange_;
  ClientDeadline deadline_;
};

}  // namespace alcove::agent

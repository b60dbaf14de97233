// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <utility>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "net/task.h"

namespace alcove::net::testing {

// Runs `loop` until `done` says so. A test that hangs ends the program after a minute.
template <typename Condition>
void run_until(boost::asio::io_context& loop, Condition done) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  loop.restart();
  while (!done()) {
    if (loop.run_one_until(end) > 0) continue;
    std::fputs("the loop stopped or a minute passed before the test's task was done\n", stderr);
    std::abort();
  }
}

// Runs a task on `loop` to its end, together with everything else there, and returns its value.
// Exceptions pass through.
template <typename T>
T run(boost::asio::io_context& loop, Task<T> task) {
  std::optional<T> value;
  std::exception_ptr failure;
  bool done = false;
  boost::asio::co_spawn(loop, std::move(task), [&](std::exception_ptr error, T result) {
    failure = error;
    if (!error) value.emplace(std::move(result));
    done = true;
  });
  run_until(loop, [&] { return done; });
  if (failure) std::rethrow_exception(failure);
  return std::move(*value);
}

inline void run(boost::asio::io_context& loop, Task<void> task) {
  std::exception_ptr failure;
  bool done = false;
  boost::asio::co_spawn(loop, std::move(task), [&](std::exception_ptr error) {
    failure = error;
    done = true;
  });
  run_until(loop, [&] { return done; });
  if (failure) std::rethrow_exception(failure);
}

}  // namespace alcove::net::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <utility>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/cancellation_signal.hpp>

#include "base/result.h"
#include "http/body.h"
#include "net/notifier.h"
#include "net/task.h"

namespace alcove::gateway {

// A second task that a coroutine runs beside itself, on the same loop. It may refer to whatever
// the coroutine owns, because the owner waits for its end (stop() or join()) before it returns.
class SideTask {
 public:
  explicit SideTask(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  SideTask(const SideTask&) = delete;
  SideTask& operator=(const SideTask&) = delete;

  // Runs `task` up to its first wait before it returns. One at a time.
  void start(Task<void> task);
  bool running() const { return running_; }
  // Waits for the end.
  Task<void> join();
  // Cancels and waits for the end: waits under way in the task end with kCanceled.
  Task<void> stop();

 private:
  boost::asio::any_io_executor executor_;
  boost::asio::cancellation_signal cancel_;
  // Made when somebody waits.
  std::optional<net::Notifier> ended_;
  bool running_ = false;
};

// The first read of a body, begun before it is known whether anything is there: what is there
// already goes out in one packet with the head.
class FirstRead {
 public:
  explicit FirstRead(boost::asio::any_io_executor executor) : task_(std::move(executor)) {}

  void begin(http::BodyReader& body, std::span<char> buffer);
  // True if the read is done; result() then does not wait.
  bool ready() const { return ready_; }
  Task<Result<size_t>> result();
  bool running() const { return task_.running(); }
  Task<void> stop() { return task_.stop(); }

 private:
  Task<void> read(http::BodyReader& body, std::span<char> buffer);

  SideTask task_;
  Result<size_t> result_ = 0;
  bool ready_ = false;
};

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "net/task.h"

namespace alcove::net {

// A condition variable for the tasks of one loop. No wake-up is lost between a check of the
// condition and the wait, because nothing else runs on the loop in between:
//   while (!ready) co_await notifier.wait();
class Notifier {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Notifier(boost::asio::any_io_executor executor);
  // Wakes those who wait.
  ~Notifier();
  Notifier(const Notifier&) = delete;
  Notifier& operator=(const Notifier&) = delete;

  // Until the next notify_all(), the notifier's end, or the task's cancelation.
  Task<void> wait();
  // The same with a deadline: true if notified, false if the time passed (or canceled).
  Task<bool> wait_until(TimePoint deadline);

  void notify_all();

 private:
  struct Waiter;
  struct Waiters;
  boost::asio::any_io_executor executor_;
  std::shared_ptr<Waiters> waiters_;
};

}  // namespace alcove::net

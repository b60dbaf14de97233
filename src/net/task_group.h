// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "net/task.h"

namespace alcove::net {

// Owns tasks of one loop. A canceled child's wait under way ends with an error, and its next
// co_await throws, which ends the child (destructors run; nothing is logged). A child that blocks
// in something that cannot be canceled delays stop() until that is done.
class TaskGroup {
 public:
  explicit TaskGroup(boost::asio::any_io_executor executor);
  // Cancels the children that are left; they end soon after, so nothing they refer to may be
  // destroyed before: prefer stop().
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Starts a child. Refused (the task is dropped) once the group is stopping.
  void spawn(Task<void> task);
  // Cancels all children without waiting for their end.
  void cancel();
  // Cancels and waits until all have ended. Idempotent; not to be called by a child.
  Task<void> stop();
  // Waits until all have ended by themselves.
  Task<void> join();

  size_t size() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "net/task.h"

namespace alcove::net {

// A descriptor registered with a loop: waits for readiness in each direction, with deadlines and
// cancelation. The streams of this room are built on it. Shared with the tasks that wait, so that
// it outlives them.
class FdWait : public std::enable_shared_from_this<FdWait> {
 public:
  enum class Direction { kRead, kWrite };
  using TimePoint = std::chrono::steady_clock::time_point;

  // The descriptor is made non-blocking. If the loop cannot take it (a plain file), every wait
  // fails.
  FdWait(const boost::asio::any_io_executor& executor, UniqueFd fd);

  int fd() { return closed_ ? -1 : descriptor_.native_handle(); }
  bool closed() const { return closed_; }

  // Until the direction is ready, its deadline, cancel() or close(). On a busy loop it may be said
  // of one that is not: asio hands what it noticed of a descriptor that was given up to the next
  // one.
  Task<Result<void>> wait(Direction direction);
  // Until a connect() that is under way has ended; the error is the connection's.
  Task<Result<void>> wait_connected(TimePoint deadline);
  // Gives other tasks a turn after many operations that needed no wait.
  bool wants_turn() { return ++without_wait_ >= kMostWithoutWait; }
  Task<void> give_turn();

  // Also for a wait under way.
  void set_deadline(Direction direction, std::optional<TimePoint> deadline) {
    side(direction).deadline = deadline;
    if (side(direction).waiting) arm_timer();
  }
  void cancel(Direction direction);
  void close();

 private:
  struct Side {
    std::optional<TimePoint> deadline;
    bool waiting = false;
    bool expired = false;
    bool canceled = false;
  };
  static constexpr int kMostWithoutWait = 32;

  Side& side(Direction direction) { return direction == Direction::kRead ? read_ : write_; }
  void arm_timer();
  void timer_fired();

  boost::asio::posix::stream_descriptor descriptor_;
  // One timer for both directions. It is not moved when a deadline moves: when it fires too early
  // it is set again.
  boost::asio::steady_timer timer_;
  std::optional<TimePoint> timer_at_;
  unsigned timer_generation_ = 0;
  Side read_;
  Side write_;
  int without_wait_ = 0;
  int register_error_ = 0;
  bool closed_ = false;
};

}  // namespace alcove::net

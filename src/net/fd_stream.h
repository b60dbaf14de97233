// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "base/unique_fd.h"
#include "net/fd_wait.h"
#include "net/task.h"

namespace alcove::net {

// A pipe, pty or other pollable descriptor on a loop; not for plain files, which are always ready.
// At most one read and one write are under way at a time.
class FdStream {
 public:
  using TimePoint = FdWait::TimePoint;

  // The descriptor is made non-blocking.
  FdStream(const boost::asio::any_io_executor& executor, UniqueFd fd);
  ~FdStream();
  FdStream(FdStream&&) = default;
  FdStream& operator=(FdStream&&) = delete;

  // At least one byte, or 0 at the end (also when the last holder of a pty's other side is gone).
  Task<Result<size_t>> read_some(std::span<char> buffer);
  // What is there at once; nothing if a read would wait.
  std::optional<Result<size_t>> try_read(std::span<char> buffer);
  // At least one byte of `data`.
  Task<Result<size_t>> write_some(std::string_view data);
  Task<Result<void>> write_all(std::string_view data);

  // Without taking anything: data, end or error is there.
  Task<Result<void>> wait_readable();
  Task<Result<void>> wait_writable();
  void set_read_deadline(std::optional<TimePoint> deadline);
  void set_write_deadline(std::optional<TimePoint> deadline);

  // Operations under way end with kCanceled.
  void close();
  int fd() const { return fd_->fd(); }

 private:
  std::shared_ptr<FdWait> fd_;
};

}  // namespace alcove::net

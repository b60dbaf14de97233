// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "base/unique_fd.h"
#include "net/fd_wait.h"
#include "net/stream.h"

namespace alcove::net {

// A connected stream socket (TCP or Unix).
class TcpStream : public Stream {
 public:
  // `fd` is connected, or connecting: then finish_connect() comes first.
  TcpStream(const boost::asio::any_io_executor& executor, UniqueFd fd);
  ~TcpStream() override;

  // Waits for the end of a non-blocking connect(). The error carries the errno of the refusal.
  Task<Result<void>> finish_connect(std::chrono::milliseconds timeout);

  Task<Result<size_t>> read_some(std::span<char> buffer) override;
  using Stream::write;
  Task<Result<void>> write(std::span<const std::string_view> pieces) override;
  Task<Result<void>> wait_readable() override;
  Task<Result<void>> wait_writable() override;
  bool is_hung_up() const override;
  void cancel_read() override;
  void set_read_deadline(std::optional<TimePoint> deadline) override;
  void set_write_deadline(std::optional<TimePoint> deadline) override;
  void shutdown_write() override;
  void close() override;
  void abort() override;
  int native_fd() const override;
  std::string peer_address() const override;

 protected:
  std::shared_ptr<FdWait> fd_;
};

// The stream of a non-blocking connect() that is under way on `fd`.
Task<Result<std::unique_ptr<Stream>>> finish_connect(UniqueFd fd,
                                                     std::chrono::milliseconds timeout);

}  // namespace alcove::net

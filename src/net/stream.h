// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/task.h"

namespace alcove::net {

// A connected byte stream (TCP, Unix, TLS). Belongs to one event loop; at most one read and
// one write are under way at a time. Every failure is a value: kUnavailable for a peer that is
// gone, kDeadlineExceeded for a passed deadline, kCanceled after close().
class Stream {
 public:
  virtual ~Stream() = default;

  // At least one byte, or 0 at the end of the stream.
  virtual Task<Result<size_t>> read_some(std::span<char> buffer) = 0;

  // All of it, gathered into as few packets as possible.
  virtual Task<Result<void>> write(std::span<const std::string_view> pieces) = 0;
  Task<Result<void>> write(std::string_view data);

  // Completes when a read would not block (data, end or error) without taking anything; of TLS
  // also when the first part of a record is there, and a read waits for the rest.
  virtual Task<Result<void>> wait_readable() = 0;

  // True if the peer sends nothing more, or is gone; looks behind what is not read yet.
  virtual bool is_hung_up() const = 0;

  // Ends a read or wait under way with kCanceled; no byte is lost. The stream stays usable.
  virtual void cancel_read() = 0;

  // Reads or writes that are not done by then fail with kDeadlineExceeded, also those under way.
  // One for each direction; nullopt (the default) waits for ever.
  using TimePoint = std::chrono::steady_clock::time_point;
  virtual void set_read_deadline(std::optional<TimePoint> deadline) = 0;
  virtual void set_write_deadline(std::optional<TimePoint> deadline) = 0;

  // Tells the peer that nothing more will be written.
  virtual void shutdown_write() = 0;
  // Closes; operations under way end with kCanceled. Idempotent.
  virtual void close() = 0;
  // Closes so that the peer sees a reset instead of an orderly end (SO_LINGER 0).
  virtual void abort() = 0;

  // Completes when a write would not block, for sendfile and splice on native_fd().
  virtual Task<Result<void>> wait_writable() = 0;
  // The socket, for sendfile and splice; -1 where bytes are transformed on the way (TLS).
  virtual int native_fd() const = 0;
  // "127.0.0.1:54321", for rate limits and logs.
  virtual std::string peer_address() const = 0;
};

}  // namespace alcove::net

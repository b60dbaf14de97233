// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/fd_wait.h"
#include "net/task.h"

struct ssl_st;
struct ssl_ctx_st;

namespace alcove::net {

// The TLS state of one connection, of either side. No call of OpenSSL waits: those that would are
// made again when the socket is ready. After an error every call fails. Shared with the tasks that
// wait, so that it outlives them.
class TlsSession : public std::enable_shared_from_this<TlsSession> {
 public:
  using TimePoint = FdWait::TimePoint;
  static constexpr std::chrono::seconds kHandshakeLimit{10};

  // What OpenSSL reads from and writes to.
  struct Transport {
    FdWait* fd = nullptr;
    // While OpenSSL reads, what it has to say itself (to a peer that changes keys) is kept here if
    // the socket does not take it: a read must not wait for the peer to read.
    bool reading = false;
    std::string unsent = {};
  };

  explicit TlsSession(std::shared_ptr<FdWait> fd,
                      std::chrono::milliseconds handshake_limit = kHandshakeLimit)
      : fd_(std::move(fd)), handshake_limit_(handshake_limit), transport_{.fd = fd_.get()} {}
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  FdWait& fd() { return *fd_; }
  // For reads and writes; a handshake has a limit of its own.
  void set_deadline(FdWait::Direction direction, std::optional<TimePoint> deadline);

  // The context must outlive the session.
  Task<Result<void>> accept(ssl_ctx_st* context);
  // `name` (may be empty) is what the server is told it is asked for.
  Task<Result<void>> connect(ssl_ctx_st* context, const std::string& name);

  // All as the functions of Stream, after the handshake.
  Task<Result<size_t>> read_some(std::span<char> buffer);
  Task<Result<void>> wait_readable();
  Task<Result<void>> write(std::span<const std::string_view> pieces);
  // Tells the peer that nothing more follows, if that is possible without waiting.
  void say_goodbye();

 private:
  Result<void> open(ssl_ctx_st* context);
  Task<Result<void>> shake_hands();
  // Both return nothing if they have to be tried again: a read when the socket is readable, a write
  // when the socket is ready for what `waits_for` says.
  std::optional<Result<size_t>> try_read(std::span<char> buffer);
  std::optional<Result<size_t>> try_write(std::string_view data, FdWait::Direction& waits_for);
  // For a write that needs the rest of a message of the peer; since `begin`.
  Task<Result<void>> wait_for_peer(TimePoint begin);
  bool would_read();
  Error why_failed() const;
  Error broken(int reason, std::string_view what);

  const std::shared_ptr<FdWait> fd_;
  const std::chrono::milliseconds handshake_limit_;
  Transport transport_;
  ssl_st* ssl_ = nullptr;
  std::optional<TimePoint> read_deadline_;
  std::optional<TimePoint> write_deadline_;
  bool open_ = false;
  // OpenSSL must not be called again after a fatal error.
  bool failed_ = false;
};

}  // namespace alcove::net

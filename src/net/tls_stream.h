// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>

#include "net/tcp_stream.h"
#include "net/tls_handshakes.h"
#include "net/tls_identity.h"

namespace alcove::net {

// An accepted connection whose client speaks TLS or not: the first byte of a TLS connection is that
// of no HTTP request. The first read or wait finds out and shakes hands, within a time limit of its
// own; a stream that is written to first is a plain one.
class TlsStream final : public TcpStream {
 public:
  // `handshakes` are those of the loop; nullptr: nobody counts.
  TlsStream(const boost::asio::any_io_executor& executor, UniqueFd fd, TlsIdentityPtr identity,
            std::shared_ptr<TlsHandshakes> handshakes = nullptr);
  ~TlsStream() override;

  Task<Result<size_t>> read_some(std::span<char> buffer) override;
  using Stream::write;
  Task<Result<void>> write(std::span<const std::string_view> pieces) override;
  Task<Result<void>> wait_readable() override;
  void set_read_deadline(std::optional<TimePoint> deadline) override;
  void set_write_deadline(std::optional<TimePoint> deadline) override;
  void shutdown_write() override;
  void close() override;
  int native_fd() const override;

 private:
  class Session;
  // The first read or wait, which begins with finding out what the client speaks.
  Task<Result<size_t>> first_read(std::span<char> buffer);
  Task<Result<void>> first_wait();

  // Shared with the tasks that wait, so that it outlives them.
  std::shared_ptr<Session> session_;
};

}  // namespace alcove::net

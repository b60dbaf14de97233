// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>

#include "net/tcp_stream.h"

namespace alcove::net {

class TlsSession;

// A connection to a server that speaks TLS and whose certificate nobody checks: for services that
// are known by where they are, not by their name.
class TlsClientStream final : public TcpStream {
 public:
  // As for TcpStream.
  TlsClientStream(const boost::asio::any_io_executor& executor, UniqueFd fd);
  ~TlsClientStream() override;

  // To be called once, when the socket is connected and before anything else. `name` is the host
  // that the server is asked for; empty where only an address is known (RFC 6066, section 3).
  Task<Result<void>> shake_hands(std::string name);

  Task<Result<size_t>> read_some(std::span<char> buffer) override;
  using Stream::write;
  Task<Result<void>> write(std::span<const std::string_view> pieces) override;
  Task<Result<void>> wait_readable() override;
  void set_read_deadline(std::optional<TimePoint> deadline) override;
  void set_write_deadline(std::optional<TimePoint> deadline) override;
  void shutdown_write() override;
  void close() override;
  int native_fd() const override { return -1; }

 private:
  std::shared_ptr<TlsSession> session_;
};

}  // namespace alcove::net

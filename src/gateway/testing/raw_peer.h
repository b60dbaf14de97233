// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace alcove::gateway {

// A blocking socket for tests that decide about every byte. What takes longer than ten seconds
// fails the test.
class RawPeer {
 public:
  explicit RawPeer(UniqueFd fd);
  static RawPeer connect_to(uint16_t port);

  void send(std::string_view data);
  // Sends what fits until the other side takes no more for `quiet_ms`; how much that was.
  size_t send_until_blocked(int quiet_ms, size_t most);

  // Everything received so far and not yet taken, up to and including `mark`; waits for it.
  std::string read_until(std::string_view mark);
  std::string read_bytes(size_t count);
  // How the other side ended the connection, after all data (which is put into `rest`).
  enum class End { kClosed, kReset };
  End read_to_end(std::string* rest = nullptr);
  // True if nothing arrives for that time.
  bool is_silent(int milliseconds);

  void shutdown_write();
  // Closes with a reset.
  void reset();
  void close() { fd_.reset(); }
  int fd() const { return fd_.get(); }

 private:
  enum class Received { kData, kEnd, kReset };
  Received receive();

  UniqueFd fd_;
  std::string buffer_;
};

// A listening socket on loopback that plays a service.
class RawService {
 public:
  explicit RawService(const char* address = "127.0.0.1");
  uint16_t port() const { return port_; }
  RawPeer accept();
  // True if a connection comes within that time.
  bool has_connection(int milliseconds);

 private:
  UniqueFd fd_;
  uint16_t port_ = 0;
};

}  // namespace alcove::gateway

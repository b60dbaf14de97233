// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/result.h"
#include "base/unique_fd.h"
#include "http/exchange.h"
#include "net/stream.h"
#include "net/task.h"

namespace alcove::http {

using Handler = std::function<Task<void>(Exchange&)>;

struct ServerOptions {
  // Longest request line plus header fields.
  size_t header_limit = 64 * 1024;
  // From the first byte of a head to its last: slow-loris clients are dropped.
  std::chrono::seconds header_timeout{10};
  // Between requests. Clients keep idle connections for 300 s.
  std::chrono::seconds idle_timeout{640};
  // How long one read of a request body may take; 0 = for ever.
  std::chrono::seconds body_read_timeout{0};
  // On connections beyond this the first request is answered 503 with a Retry-After, if it comes at
  // once, and nothing more (kMostRefused at a time; others are closed).
  size_t max_connections = 15000;
  // The same for connections whose descriptor has this number or a higher one: nearly all are used.
  int descriptor_limit = std::numeric_limits<int>::max();
  // How long the client may take no byte of an answer; 0 = for ever.
  std::chrono::seconds write_timeout{0};
  // What a handler left unread of a request body is read up to this length to keep the connection;
  // beyond it the connection is closed.
  uint64_t drain_limit = 256 * 1024;
  // Makes the stream of an accepted socket; none: a plain one.
  std::function<std::unique_ptr<net::Stream>(const boost::asio::any_io_executor&, UniqueFd)>
      make_stream;
};

// HTTP/1.1 on the connections of one event loop. The handler runs on that loop; exceptions that
// leave it are answered with 500 and logged. Used on the loop's thread, or while it does not run.
class Server {
 public:
  Server(boost::asio::io_context& loop, Handler handler, ServerOptions options = {});
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // Accepts from a listening socket (several loops may each have their own by SO_REUSEPORT).
  Result<void> serve(UniqueFd listener);
  // Serves one connection that is already there (tests, fd passing).
  void serve_connection(std::unique_ptr<net::Stream> stream);
  // An idle connection cannot be told that it ends, and a request may be on its way: it is waited
  // for so long, and answered with `Connection: close`.
  static constexpr std::chrono::milliseconds kLastChance{200};
  // Connections that are only told that there are too many.
  static constexpr size_t kMostRefused = 64;

  // Stops accepting and waits for nothing; idle connections are closed after kLastChance, busy ones
  // after their answer. The destructor closes them at once, but handlers go on until they notice.
  void stop();
  size_t connection_count() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace alcove::http

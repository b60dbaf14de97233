// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <list>
#include <memory>
#include <string_view>

#include "http/connection_io.h"
#include "http/framing.h"
#include "http/server.h"

namespace alcove::http {

// Serves the requests of one connection, one after the other.
class ServerConnection {
 public:
  ServerConnection(const boost::asio::any_io_executor& executor,
                   std::unique_ptr<net::Stream> stream, std::shared_ptr<const Handler> handler,
                   const ServerOptions& options);

  // Until the connection is closed by either side. Runs once.
  Task<void> run();

  // Closes after the answer that is under way, or when no request comes within
  // Server::kLastChance.
  void close_when_idle();
  // Closes at once.
  void close() { io_->stream->close(); }

 private:
  // False if none came.
  Task<bool> wait_for_request();
  // Serves one request; false when the connection is over.
  Task<bool> serve_next();
  struct Head {
    RequestHead request;
    Framing framing;
  };
  // Nothing when the connection is over (an error was answered).
  Task<std::optional<Head>> read_head();
  Task<bool> handle(Head head);
  Task<void> refuse(int status, std::string_view message);
  // Closes so that the answer gets through although the client may still be sending: closing with
  // unread data would reset the connection.
  Task<void> close_gently();

  std::shared_ptr<ConnectionIo> io_;
  std::shared_ptr<const Handler> handler_;
  bool idle_ = true;
};

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "http/server.h"
#include "http/testing/loop_runner.h"
#include "net/testing/socket_pair.h"
#include "net/testing/tls_identity.h"
#include "net/tls_client_stream.h"
#include "net/tls_stream.h"

namespace alcove::http::testing {

// A server on one end of a socket pair and the raw bytes of a client on the other.
class RawClient {
 public:
  explicit RawClient(Handler handler, ServerOptions options = {})
      : server_(loop_, std::move(handler), options) {
    reconnect();
  }

  // A new connection to the same server.
  void reconnect() {
    auto [client, served] = make_stream_pair(loop_);
    client_ = std::move(client);
    server_.serve_connection(std::move(served));
  }

  // Talks through `stream`, whose other end a test has given to the server.
  void use(std::unique_ptr<net::TcpStream> stream) { client_ = std::move(stream); }

  // A new connection by TLS. What is sent to the socket that this returns comes beside it.
  int use_tls() {
    auto [own, served] = net::testing::make_socket_pair();
    const int socket = own.get();
    server_.serve_connection(std::make_unique<net::TlsStream>(
        loop_.get_executor(), std::move(served), net::testing::make_identity()));
    auto stream = std::make_unique<net::TlsClientStream>(loop_.get_executor(), std::move(own));
    (void)run(loop_, stream->shake_hands("alcove.localhost"));
    client_ = std::move(stream);
    return socket;
  }

  void send(std::string_view bytes) { (void)run(loop_, client_->write(bytes)); }
  // What the server sends until it closes.
  std::string read_to_end() { return run(loop_, read(*client_, std::string_view())); }
  // What the server sends up to and including `mark`.
  std::string read_through(std::string_view mark) { return run(loop_, read(*client_, mark)); }
  // Sends, says that nothing follows, and reads everything.
  std::string talk(std::string_view bytes) {
    send(bytes);
    client_->shutdown_write();
    return read_to_end();
  }

  boost::asio::io_context& loop() { return loop_; }
  Server& server() { return server_; }
  net::Stream& stream() { return *client_; }

 private:
  static Task<std::string> read(net::Stream& stream, std::string_view mark) {
    std::string all;
    char buffer[16 * 1024];
    for (;;) {
      // With a mark byte by byte, so that nothing behind it is taken.
      const std::span<char> room(buffer, mark.empty() ? sizeof buffer : 1);
      const auto count = co_await stream.read_some(room);
      if (!count || *count == 0) co_return all;
      all.append(buffer, *count);
      if (!mark.empty() && all.ends_with(mark)) co_return all;
    }
  }

  boost::asio::io_context loop_{1};
  Server server_;
  std::unique_ptr<net::TcpStream> client_;
};

}  // namespace alcove::http::testing

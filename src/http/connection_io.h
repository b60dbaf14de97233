// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "http/read_buffer.h"
#include "http/server.h"
#include "net/notifier.h"
#include "net/stream.h"

namespace alcove::http {

// What the requests of one server connection share. Owned by the connection and by tasks that
// watch it for its end.
struct ConnectionIo {
  ConnectionIo(const boost::asio::any_io_executor& executor, std::unique_ptr<net::Stream> used,
               const ServerOptions& server_options)
      : stream(std::move(used)), options(server_options), watch_changed(executor) {}

  // Writes everything, in slices that each have the write timeout.
  Task<Result<void>> write(std::span<const std::string_view> pieces);
  // A limit for the next write or wait_writable() on the stream.
  void begin_write();

  std::unique_ptr<net::Stream> stream;
  const ServerOptions options;
  ReadBuffer buffer;
  // The server is stopping: answers announce the end of the connection.
  bool closing = false;

  // wait_disconnect(): one task reads ahead, the others wait for watch_changed.
  net::Notifier watch_changed;
  bool watching = false;
  bool peer_gone = false;
  // Counts requests; a watch ends with the request it began in.
  uint64_t request_number = 0;
};

}  // namespace alcove::http

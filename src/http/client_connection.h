// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/body.h"
#include "http/message.h"
#include "net/stream.h"
#include "net/task.h"

namespace alcove::http {

// The client's side of one HTTP/1.1 connection: request after request, each streamed both ways.
// The peer is not trusted (it may be a program inside a sandbox): heads are limited, framing is
// checked strictly.
class ClientConnection {
 public:
  explicit ClientConnection(std::unique_ptr<net::Stream> stream, size_t header_limit = 64 * 1024);
  ~ClientConnection();
  ClientConnection(ClientConnection&&) noexcept;
  ClientConnection& operator=(ClientConnection&&) noexcept;

  // Sends the head. Framing headers in `head` are replaced according to `length`; a request
  // without a body has length 0 and, for GET/HEAD/DELETE, no Content-Length. `first_body` goes
  // out with it.
  Task<Result<void>> write_head(const RequestHead& head, BodyLength length,
                                std::string_view first_body = {});
  Task<Result<void>> write_body(std::string_view data);
  Task<Result<void>> finish_body(std::string_view last = {});

  // The final answer's head (1xx other than 101 are skipped). May be called while the body is
  // still being written by another task.
  Task<Result<ResponseHead>> read_head(std::string_view request_method);
  // The body of the answer read by the last read_head().
  BodyReader& body();

  // True when both messages were complete and the peer keeps the connection.
  bool reusable() const;
  // True if a response body with no length ends only by closing (not chunked, no Content-Length).
  bool body_ends_by_close() const;

  net::Stream& stream();
  // Bytes read beyond the head, after a 101.
  std::string take_read_ahead();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Sends a whole request and reads a whole answer.
Task<Result<Response>> fetch(ClientConnection& connection, RequestHead head, std::string body,
                             uint64_t response_limit);

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/body.h"
#include "http/message.h"
#include "net/stream.h"
#include "net/task.h"

namespace alcove::http {

// One request on a server connection and the way to answer it. Lives for the duration of the
// handler. What the handler leaves unread of the body is drained (up to a limit) or the connection
// closed; a handler that returns without answering causes a 500.
class Exchange {
 public:
  virtual ~Exchange() = default;

  virtual const RequestHead& request() const = 0;
  // Answers `Expect: 100-continue` at the first read.
  virtual BodyReader& body() = 0;
  // Ends a read of the body under way with kCanceled; no byte is lost, and it may be read on.
  virtual void cancel_read() = 0;
  // From now on reads of the body fail with kDeadlineExceeded when one waits longer than `idle`, or
  // at the end of `total`. Without this, they wait as the server's options say.
  virtual void limit_body_time(std::chrono::steady_clock::duration idle,
                               std::chrono::steady_clock::duration total) = 0;
  virtual std::string peer_address() const = 0;

  // Answers with a whole message (Content-Length, one write).
  virtual Task<Result<void>> respond(Response response) = 0;

  // Answers piece by piece: start(), write()..., finish(). Every write is on the wire when it
  // returns (no buffering), which is also the back-pressure.
  virtual Task<Result<void>> start(ResponseHead head, BodyLength length) = 0;
  // Sends the head together with the first bytes: one packet instead of two.
  virtual Task<Result<void>> start_with(ResponseHead head, BodyLength length,
                                        std::string_view first) = 0;
  virtual Task<Result<void>> write(std::string_view data) = 0;
  // The end of the body; `last` goes out in the same packet as the end mark.
  virtual Task<Result<void>> finish(std::string_view last = {}) = 0;

  // `count` bytes of a file from `offset` as part of the body (sendfile where the stream allows).
  // Only between start() with a known length and finish().
  virtual Task<Result<void>> send_file(int fd, uint64_t offset, uint64_t count) = 0;

  // Cuts the connection without an end mark: the client sees a failed transfer.
  virtual void abort() = 0;
  // This connection is closed after the answer ("Connection: close" is announced).
  virtual void close_after() = 0;

  // True once start/respond has sent a head.
  virtual bool started() const = 0;

  // Completes when the client closes or resets the connection. Call only after the request body
  // was read to its end. Pipelined requests are not mistaken for an end.
  virtual Task<void> wait_disconnect() = 0;

  // True if the client has closed its end of the connection, or the connection is broken, even
  // with data of the client unread. A look at any time, without a wait.
  virtual bool client_hung_up() const = 0;

  // For tunnels, after a 101 was sent with start(): the raw connection, and bytes that were read
  // beyond the head. The connection is closed when the handler returns.
  virtual net::Stream& raw_stream() = 0;
  virtual std::string take_read_ahead() = 0;
};

}  // namespace alcove::http

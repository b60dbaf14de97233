// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/connection_io.h"
#include "http/exchange.h"
#include "http/framing.h"
#include "http/message_body.h"

namespace alcove::http {

// One request on a server connection. Made by ServerConnection for each request.
class ServerExchange final : public Exchange, private BodyReader {
 public:
  ServerExchange(std::shared_ptr<ConnectionIo> io, RequestHead head, Framing framing);
  ~ServerExchange() override;

  const RequestHead& request() const override { return head_; }
  BodyReader& body() override { return *this; }
  void cancel_read() override { io_->stream->cancel_read(); }
  void limit_body_time(std::chrono::steady_clock::duration idle,
                       std::chrono::steady_clock::duration total) override;
  std::string peer_address() const override { return io_->stream->peer_address(); }
  Task<Result<void>> respond(Response response) override;
  Task<Result<void>> start(ResponseHead head, BodyLength length) override;
  Task<Result<void>> start_with(ResponseHead head, BodyLength length,
                                std::string_view first) override;
  Task<Result<void>> write(std::string_view data) override;
  Task<Result<void>> finish(std::string_view last) override;
  Task<Result<void>> send_file(int fd, uint64_t offset, uint64_t count) override;
  void abort() override;
  void close_after() override { keep_alive_ = false; }
  bool started() const override { return started_; }
  Task<void> wait_disconnect() override;
  bool client_hung_up() const override { return io_->peer_gone || io_->stream->is_hung_up(); }
  net::Stream& raw_stream() override;
  std::string take_read_ahead() override;

  // What is left to do after the handler.
  enum class After {
    kNextRequest,
    // The answer is complete; the client may still be sending.
    kClose,
    // The client announced that it sends nothing more, or something went wrong, or the connection
    // was a tunnel: nothing is lost by closing at once.
    kDrop,
  };
  Task<After> conclude();

 private:
  // How the answer's body is delimited.
  enum class BodyMode { kNone, kLength, kChunked, kUntilClose };

  Task<Result<size_t>> read(std::span<char> buffer) override;
  std::optional<uint64_t> length() const override { return body_.length(); }

  // Decides framing and persistence, and writes the head into `out`.
  Result<void> prepare_head(const ResponseHead& head, BodyLength length, std::string& out);
  // True if the client wanted the connection to end here, and has sent nothing that is unread.
  bool client_is_done() const;
  // False if the request's body makes the next request unreachable.
  bool can_keep_alive() const;
  Task<Result<void>> send(std::span<const std::string_view> pieces);
  // Counts body bytes of an answer with a known length; an error if there are too many.
  Result<void> take_length(uint64_t count);
  Task<bool> drain_body();
  Task<void> end_watch();

  std::shared_ptr<ConnectionIo> io_;
  RequestHead head_;
  MessageBody body_;
  // How long one read of the body may wait; 0 = for ever.
  std::chrono::steady_clock::duration body_idle_;
  std::optional<std::chrono::steady_clock::time_point> body_end_;
  const bool is_head_request_;
  bool expects_continue_;
  bool keep_alive_;
  bool started_ = false;
  bool finished_ = false;
  bool failed_ = false;
  bool tunnel_ = false;
  BodyMode mode_ = BodyMode::kNone;
  uint64_t length_left_ = 0;
};

}  // namespace alcove::http

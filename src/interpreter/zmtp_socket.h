// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "base/result.h"
#include "interpreter/zmtp_frame.h"
#include "net/notifier.h"
#include "net/stream.h"
#include "net/task.h"

namespace alcove::interpreter {

enum class ZmtpSocketType { kDealer, kSub };

// One end of a ZMTP connection, as the side that connects: a DEALER for a ROUTER, or a SUB (of
// everything) for a PUB. Unlike ZeroMQ's sockets it is one connection that is not made again when
// it breaks. Belongs to one loop; one send and one receive may be under way at a time. What the
// peer sends is bounded (zmtp_frame.h); a peer that breaks the protocol gets an error, and the
// connection is of no use from then on.
class ZmtpSocket {
 public:
  // Shakes hands over a connected stream. `identity` is what a ROUTER calls us by.
  static Task<Result<std::unique_ptr<ZmtpSocket>>> open(std::unique_ptr<net::Stream> stream,
                                                        ZmtpSocketType type, std::string identity,
                                                        std::chrono::milliseconds timeout);

  Task<Result<void>> send(ZmtpMessage message);
  // The next message. kUnavailable when the peer has closed the connection.
  Task<Result<ZmtpMessage>> receive();

  // Ends what is under way with kCanceled. Idempotent.
  void close() { stream_->close(); }

 private:
  ZmtpSocket(std::unique_ptr<net::Stream> stream, const boost::asio::any_io_executor& executor);

  Task<Result<void>> shake_hands(ZmtpSocketType type, std::string identity);
  Task<Result<void>> read_greeting();
  Task<Result<void>> fill();
  Task<Result<ZmtpFrame>> read_frame();
  Task<Result<void>> obey(std::string body);
  Task<Result<void>> write_frame(ZmtpFrame::Kind kind, std::string body);
  Task<Result<void>> write(std::span<const std::string_view> pieces);

  std::unique_ptr<net::Stream> stream_;
  std::unique_ptr<char[]> buffer_;
  std::string_view received_;  // in buffer_, not decoded yet
  ZmtpFrameDecoder decoder_;
  ZmtpMessageAssembler assembler_;
  // The answer to a PING must not land inside a message that is being sent.
  bool writing_ = false;
  net::Notifier written_;
};

}  // namespace alcove::interpreter

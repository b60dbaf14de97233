// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/zmtp_socket.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <boost/asio/this_coro.hpp>

#include "base/strings.h"
#include "interpreter/zmtp_command.h"

namespace alcove::interpreter {
namespace {

constexpr size_t kBufferBytes = size_t{64} << 10;

std::string_view name_of(ZmtpSocketType type) {
  return type == ZmtpSocketType::kDealer ? "DEALER" : "SUB";
}

bool fits(ZmtpSocketType type, std::string_view peer) {
  if (type == ZmtpSocketType::kDealer) {
    return peer == "ROUTER" || peer == "DEALER" || peer == "REP";
  }
  return peer == "PUB" || peer == "XPUB";
}

}  // namespace

ZmtpSocket::ZmtpSocket(std::unique_ptr<net::Stream> stream,
                       const boost::asio::any_io_executor& executor)
    : stream_(std::move(stream)),
      buffer_(std::make_unique_for_overwrite<char[]>(kBufferBytes)),
      written_(executor) {}

Task<Result<std::unique_ptr<ZmtpSocket>>> ZmtpSocket::open(std::unique_ptr<net::Stream> stream,
                                                           ZmtpSocketType type,
                                                           std::string identity,
                                                           std::chrono::milliseconds timeout) {
  const auto executor = co_await boost::asio::this_coro::executor;
  std::unique_ptr<ZmtpSocket> socket(new ZmtpSocket(std::move(stream), executor));
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  socket->stream_->set_read_deadline(deadline);
  socket->stream_->set_write_deadline(deadline);
  ALCOVE_CO_TRY(co_await socket->shake_hands(type, std::move(identity)));
  socket->stream_->set_read_deadline(std::nullopt);
  socket->stream_->set_write_deadline(std::nullopt);
  co_return socket;
}

Task<Result<void>> ZmtpSocket::shake_hands(ZmtpSocketType type, std::string identity) {
  const std::string greeting = make_zmtp_greeting();
  ALCOVE_CO_TRY(co_await stream_->write(greeting));
  ALCOVE_CO_TRY(co_await read_greeting());
  const ZmtpReady own{.socket_type = std::string(name_of(type)), .identity = std::move(identity)};
  ALCOVE_CO_TRY(co_await write_frame(ZmtpFrame::Kind::kCommand, make_zmtp_ready(own)));
  ALCOVE_CO_TRY_ASSIGN(const ZmtpFrame frame, co_await read_frame());
  if (frame.kind != ZmtpFrame::Kind::kCommand) {
    co_return fail(Code::kInvalidArgument, "the ZMTP peer sent a message before READY");
  }
  ALCOVE_CO_TRY_ASSIGN(const ZmtpCommand command, parse_zmtp_command(frame.body));
  if (command.name != "READY") {
    co_return fail(Code::kInvalidArgument, "the ZMTP peer refused the connection");
  }
  ALCOVE_CO_TRY_ASSIGN(const ZmtpReady peer, parse_zmtp_ready(command.data));
  if (!fits(type, peer.socket_type)) {
    co_return fail(Code::kInvalidArgument,
                   cat("a ZMTP ", name_of(type), " cannot talk to this type of socket"));
  }
  // ZMTP 3.0 subscribes by a message: 1 and the prefix, which is empty.
  if (type == ZmtpSocketType::kSub) {
    ALCOVE_CO_TRY(co_await write_frame(ZmtpFrame::Kind::kMessage, std::string(1, '\1')));
  }
  co_return Result<void>{};
}

Task<Result<void>> ZmtpSocket::send(ZmtpMessage message) {
  std::vector<std::string> heads;
  heads.reserve(message.size());
  std::vector<std::string_view> pieces;
  pieces.reserve(2 * message.size());
  for (const std::string& part : message) {
    heads.push_back(make_zmtp_frame_head(ZmtpFrame::Kind::kMessage, part.size(),
                                         heads.size() + 1 < message.size()));
    pieces.push_back(heads.back());
    pieces.push_back(part);
  }
  co_return co_await write(pieces);
}

Task<Result<ZmtpMessage>> ZmtpSocket::receive() {
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(ZmtpFrame frame, co_await read_frame());
    if (frame.kind == ZmtpFrame::Kind::kCommand) {
      ALCOVE_CO_TRY(co_await obey(std::move(frame.body)));
      continue;
    }
    ALCOVE_CO_TRY_ASSIGN(auto message, assembler_.add(std::move(frame)));
    if (message) co_return std::move(*message);
  }
}

Task<Result<void>> ZmtpSocket::read_greeting() {
  std::string greeting;
  while (greeting.size() < kZmtpGreetingBytes) {
    if (received_.empty()) ALCOVE_CO_TRY(co_await fill());
    const size_t count = std::min(kZmtpGreetingBytes - greeting.size(), received_.size());
    greeting += received_.substr(0, count);
    received_.remove_prefix(count);
  }
  co_return check_zmtp_greeting(greeting);
}

Task<Result<void>> ZmtpSocket::fill() {
  ALCOVE_CO_TRY_ASSIGN(const size_t count,
                       co_await stream_->read_some({buffer_.get(), kBufferBytes}));
  if (count == 0) co_return fail(Code::kUnavailable, "the ZMTP peer closed the connection");
  received_ = {buffer_.get(), count};
  co_return Result<void>{};
}

Task<Result<ZmtpFrame>> ZmtpSocket::read_frame() {
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(auto frame, decoder_.take(received_));
    if (frame) co_return std::move(*frame);
    ALCOVE_CO_TRY(co_await fill());
  }
}

Task<Result<void>> ZmtpSocket::obey(std::string body) {
  ALCOVE_CO_TRY_ASSIGN(const ZmtpCommand command, parse_zmtp_command(body));
  if (command.name == "ERROR") co_return fail(Code::kUnavailable, "the ZMTP peer gave up");
  // Others are for features that we do not announce.
  if (command.name != "PING") co_return Result<void>{};
  ALCOVE_CO_TRY_ASSIGN(std::string pong, make_zmtp_pong(command.data));
  co_return co_await write_frame(ZmtpFrame::Kind::kCommand, std::move(pong));
}

Task<Result<void>> ZmtpSocket::write_frame(ZmtpFrame::Kind kind, std::string body) {
  const std::string head = make_zmtp_frame_head(kind, body.size(), /*more=*/false);
  const std::string_view pieces[] = {head, body};
  co_return co_await write(pieces);
}

Task<Result<void>> ZmtpSocket::write(std::span<const std::string_view> pieces) {
  while (writing_) co_await written_.wait();
  writing_ = true;
  auto result = co_await stream_->write(pieces);
  writing_ = false;
  written_.notify_all();
  co_return result;
}

}  // namespace alcove::interpreter

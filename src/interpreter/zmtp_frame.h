// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::interpreter {

// ZMTP 3.0 (https://rfc.zeromq.org/spec/23/): what ZeroMQ sockets say on the wire.

// A frame is one part of a message, or a command.
struct ZmtpFrame {
  enum class Kind { kMessage, kCommand };
  Kind kind = Kind::kMessage;
  bool more = false;  // another part of the same message follows
  std::string body;
};

// A message: one or more parts.
using ZmtpMessage = std::vector<std::string>;

// Limits of what a peer may send. A plot or a table of a notebook has some megabytes.
inline constexpr size_t kZmtpMostMessageBytes = size_t{256} << 20;
inline constexpr size_t kZmtpMostCommandBytes = size_t{64} << 10;
inline constexpr size_t kZmtpMostParts = 256;

// The 64 bytes that both sides send first: version 3.0, mechanism NULL.
inline constexpr size_t kZmtpGreetingBytes = 64;
std::string make_zmtp_greeting();
// Whether we can talk to a peer that begins with these 64 bytes.
Result<void> check_zmtp_greeting(std::string_view greeting);

// The head of a frame whose body has `size` bytes: 2 or 9 bytes.
std::string make_zmtp_frame_head(ZmtpFrame::Kind kind, size_t size, bool more);

// Cuts a stream of bytes into frames. After an error it stays unusable.
class ZmtpFrameDecoder {
 public:
  // Takes bytes off the front of `bytes`: up to the end of a frame, which is returned, or all.
  // Memory is taken for what has arrived, not for what a head announces.
  Result<std::optional<ZmtpFrame>> take(std::string_view& bytes);

 private:
  Result<void> begin_body();

  std::string head_;
  std::optional<uint64_t> body_size_;
  ZmtpFrame frame_;
};

// Puts message frames together to messages; commands are not for it.
class ZmtpMessageAssembler {
 public:
  // The message that this frame completes, if it does.
  Result<std::optional<ZmtpMessage>> add(ZmtpFrame frame);

 private:
  ZmtpMessage parts_;
  size_t bytes_ = 0;
};

}  // namespace alcove::interpreter

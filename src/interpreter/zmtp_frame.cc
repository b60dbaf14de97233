// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/zmtp_frame.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

constexpr unsigned char kMore = 1;
constexpr unsigned char kLong = 2;
constexpr unsigned char kCommand = 4;
constexpr size_t kShortHead = 2;
constexpr size_t kLongHead = 9;
constexpr size_t kMostShortBody = 255;

constexpr size_t kVersionAt = 10;
constexpr size_t kMechanismAt = 12;
constexpr size_t kMechanismBytes = 20;
constexpr std::string_view kMechanism = "NULL";

unsigned char byte_at(std::string_view bytes, size_t at) {
  return static_cast<unsigned char>(bytes[at]);
}

}  // namespace

std::string make_zmtp_greeting() {
  std::string greeting(kZmtpGreetingBytes, '\0');
  greeting[0] = '\xFF';
  greeting[9] = '\x7F';
  greeting[kVersionAt] = 3;
  std::copy(kMechanism.begin(), kMechanism.end(), greeting.begin() + kMechanismAt);
  return greeting;
}

Result<void> check_zmtp_greeting(std::string_view greeting) {
  if (greeting.size() != kZmtpGreetingBytes || byte_at(greeting, 0) != 0xFF ||
      (byte_at(greeting, 9) & 1) == 0) {
    return fail(Code::kInvalidArgument, "the peer does not speak ZMTP");
  }
  if (byte_at(greeting, kVersionAt) < 3) {
    return fail(Code::kInvalidArgument,
                cat("the peer speaks ZMTP ", int{byte_at(greeting, kVersionAt)}, ", not 3"));
  }
  std::string mechanism(kMechanismBytes, '\0');
  std::copy(kMechanism.begin(), kMechanism.end(), mechanism.begin());
  if (greeting.substr(kMechanismAt, kMechanismBytes) != mechanism) {
    return fail(Code::kInvalidArgument, "the peer wants a security mechanism other than NULL");
  }
  return {};
}

std::string make_zmtp_frame_head(ZmtpFrame::Kind kind, size_t size, bool more) {
  const bool is_long = size > kMostShortBody;
  std::string head;
  head += static_cast<char>((kind == ZmtpFrame::Kind::kCommand ? kCommand : 0) |
                            (more ? kMore : 0) | (is_long ? kLong : 0));
  for (int shift = is_long ? 56 : 0; shift >= 0; shift -= 8) {
    head += static_cast<char>((uint64_t{size} >> shift) & 0xFF);
  }
  return head;
}

Result<std::optional<ZmtpFrame>> ZmtpFrameDecoder::take(std::string_view& bytes) {
  while (!body_size_) {
    if (bytes.empty()) return std::nullopt;
    head_ += bytes.front();
    bytes.remove_prefix(1);
    const size_t wanted = (byte_at(head_, 0) & kLong) != 0 ? kLongHead : kShortHead;
    if (head_.size() == wanted) ALCOVE_TRY(begin_body());
  }
  const size_t count = std::min<uint64_t>(*body_size_ - frame_.body.size(), bytes.size());
  frame_.body.append(bytes.substr(0, count));
  bytes.remove_prefix(count);
  if (frame_.body.size() < *body_size_) return std::nullopt;
  head_.clear();
  body_size_.reset();
  return std::exchange(frame_, {});
}

Result<void> ZmtpFrameDecoder::begin_body() {
  const unsigned char flags = byte_at(head_, 0);
  const bool command = (flags & kCommand) != 0;
  if ((flags & ~(kMore | kLong | kCommand)) != 0 || (command && (flags & kMore) != 0)) {
    return fail(Code::kInvalidArgument, "a ZMTP frame with unknown flags");
  }
  uint64_t size = 0;
  for (size_t at = 1; at < head_.size(); ++at) size = size << 8 | byte_at(head_, at);
  if (size > (command ? kZmtpMostCommandBytes : kZmtpMostMessageBytes)) {
    return fail(Code::kResourceExhausted, cat("a ZMTP frame of ", size, " bytes is too large"));
  }
  frame_.kind = command ? ZmtpFrame::Kind::kCommand : ZmtpFrame::Kind::kMessage;
  frame_.more = (flags & kMore) != 0;
  body_size_ = size;
  return {};
}

Result<std::optional<ZmtpMessage>> ZmtpMessageAssembler::add(ZmtpFrame frame) {
  bytes_ += frame.body.size();
  if (bytes_ > kZmtpMostMessageBytes || parts_.size() == kZmtpMostParts) {
    return fail(Code::kResourceExhausted, "a ZMTP message is too large");
  }
  parts_.push_back(std::move(frame.body));
  if (frame.more) return std::nullopt;
  bytes_ = 0;
  return std::exchange(parts_, {});
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/message_body.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace alcove::http {

MessageBody::MessageBody(net::Stream& stream, ReadBuffer& buffer, Framing framing)
    : stream_(stream), buffer_(buffer), framing_(framing) {
  if (framing.kind == Framing::Kind::kLength) remaining_ = framing.length;
  complete_ = framing.kind == Framing::Kind::kNone ||
              (framing.kind == Framing::Kind::kLength && framing.length == 0);
}

std::optional<uint64_t> MessageBody::length() const {
  switch (framing_.kind) {
    case Framing::Kind::kNone:
      return 0;
    case Framing::Kind::kLength:
      return framing_.length;
    case Framing::Kind::kChunked:
    case Framing::Kind::kUntilClose:
      break;
  }
  return std::nullopt;
}

Task<Result<size_t>> MessageBody::read(std::span<char> output) {
  if (failure_) co_return fail(*failure_);
  if (complete_ || output.empty()) co_return size_t{0};
  if (framing_.kind == Framing::Kind::kChunked) co_return co_await read_chunked(output);

  if (framing_.kind == Framing::Kind::kLength && output.size() > remaining_) {
    output = output.first(static_cast<size_t>(remaining_));
  }
  size_t count = std::min(output.size(), buffer_.size());
  if (count > 0) {
    std::memcpy(output.data(), buffer_.data().data(), count);
    buffer_.consume(count);
  } else {
    ALCOVE_CO_TRY_ASSIGN(count, co_await stream_.read_some(output));
    if (count == 0) co_return end_of_stream();
  }
  if (framing_.kind == Framing::Kind::kLength) {
    remaining_ -= count;
    complete_ = remaining_ == 0;
  }
  co_return count;
}

Task<Result<size_t>> MessageBody::read_chunked(std::span<char> output) {
  for (;;) {
    if (!buffer_.empty()) {
      ALCOVE_CO_TRY_ASSIGN(const size_t count, decode_received(output));
      if (count > 0 || complete_) co_return count;
    }
    if (const uint64_t left = decoder_.data_left(); left > 0 && buffer_.empty()) {
      // Straight into the reader's memory while a chunk lasts.
      const auto room = static_cast<size_t>(std::min<uint64_t>(left, output.size()));
      ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await stream_.read_some(output.first(room)));
      if (count == 0) co_return end_of_stream();
      decoder_.data_taken(count);
      co_return count;
    }
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await stream_.read_some(buffer_.prepare()));
    if (count == 0) co_return end_of_stream();
    buffer_.commit(count);
  }
}

Result<size_t> MessageBody::decode_received(std::span<char> output) {
  const ChunkDecoder::Step step = decoder_.decode(buffer_.data(), output);
  if (!step.valid) return fail(broken("broken chunked coding"));
  buffer_.consume(step.consumed);
  complete_ = decoder_.done();
  return step.produced;
}

Result<size_t> MessageBody::end_of_stream() {
  if (framing_.kind == Framing::Kind::kUntilClose) {
    complete_ = true;
    return size_t{0};
  }
  failure_ = Error(Code::kUnavailable, "the peer closed the connection inside a body");
  return fail(*failure_);
}

Error MessageBody::broken(std::string message) {
  failure_ = Error(Code::kInvalidArgument, std::move(message));
  return *failure_;
}

bool MessageBody::is_received() const {
  if (complete_ || failure_) return complete_;
  if (framing_.kind == Framing::Kind::kLength) return not_received() == 0;
  if (framing_.kind != Framing::Kind::kChunked) return false;
  // Tried on a copy: the bytes are still to be read.
  ChunkDecoder decoder = decoder_;
  std::array<char, 4096> unused;
  std::string_view data = buffer_.data();
  while (!data.empty() && !decoder.done()) {
    const ChunkDecoder::Step step = decoder.decode(data, unused);
    if (!step.valid) return false;
    data.remove_prefix(step.consumed);
  }
  return decoder.done();
}

uint64_t MessageBody::not_received() const {
  return remaining_ - std::min<uint64_t>(remaining_, buffer_.size());
}

void MessageBody::discard_received() {
  std::array<char, 4096> unused;
  while (!complete_ && !failure_ && !buffer_.empty()) {
    if (framing_.kind == Framing::Kind::kChunked) {
      (void)decode_received(unused);
      continue;
    }
    const auto count = static_cast<size_t>(framing_.kind == Framing::Kind::kLength
                                               ? std::min<uint64_t>(remaining_, buffer_.size())
                                               : buffer_.size());
    buffer_.consume(count);
    if (framing_.kind == Framing::Kind::kLength) {
      remaining_ -= count;
      complete_ = remaining_ == 0;
    }
  }
}

}  // namespace alcove::http

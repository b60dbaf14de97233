// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "http/body.h"
#include "http/chunk_decoder.h"
#include "http/framing.h"
#include "http/read_buffer.h"
#include "net/stream.h"

namespace alcove::http {

// The body of the message whose head was just taken from `buffer`; more of it comes from `stream`.
// Both outlive this. Used by servers and clients.
class MessageBody final : public BodyReader {
 public:
  MessageBody(net::Stream& stream, ReadBuffer& buffer, Framing framing);

  Task<Result<size_t>> read(std::span<char> output) override;
  std::optional<uint64_t> length() const override;

  // True when the end was reached: the next byte in the buffer belongs to another message.
  bool complete() const { return complete_; }
  Framing::Kind kind() const { return framing_.kind; }
  // True if the rest was received, too, and reading it needs no wait.
  bool is_received() const;
  // Bytes of a body with a known length that were not received.
  uint64_t not_received() const;
  // Throws away what has already been received, without waiting for more. Only when nobody reads
  // any more.
  void discard_received();

 private:
  Task<Result<size_t>> read_chunked(std::span<char> output);
  // Decodes from the buffer; the number of bytes written to `output`.
  Result<size_t> decode_received(std::span<char> output);
  Result<size_t> end_of_stream();
  Error broken(std::string message);

  net::Stream& stream_;
  ReadBuffer& buffer_;
  Framing framing_;
  uint64_t remaining_ = 0;
  ChunkDecoder decoder_;
  bool complete_ = false;
  std::optional<Error> failure_;
};

}  // namespace alcove::http

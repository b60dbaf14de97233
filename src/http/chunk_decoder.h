// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace alcove::http {

// Takes the chunked coding off a body (RFC 9112 section 7.1), byte by byte as it comes. Strict:
// CRLF only, bounded sizes, extensions and trailers; trailers are dropped.
class ChunkDecoder {
 public:
  struct Step {
    size_t consumed = 0;
    size_t produced = 0;
    bool valid = true;
  };

  // Decodes as much as fits; stops behind the end of the body.
  Step decode(std::string_view input, std::span<char> output);

  bool done() const { return state_ == State::kDone; }
  // What is left of the chunk under way, when its next byte is data: it may be received directly,
  // and data_taken() says how much was.
  uint64_t data_left() const { return state_ == State::kData ? left_ : 0; }
  void data_taken(uint64_t count);

 private:
  enum class State {
    kSize,
    kExtension,
    kSizeEnd,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,
    kTrailerLine,
    kTrailerLf,
    kLastLf,
    kDone,
  };

  // One byte outside of chunk data; false if it must not be there.
  bool step(char c);

  State state_ = State::kSize;
  uint64_t left_ = 0;
  // Digits of the size under way.
  unsigned digits_ = 0;
  // Bytes of the extension or trailers under way.
  unsigned overhead_ = 0;
};

}  // namespace alcove::http

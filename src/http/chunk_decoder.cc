// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/chunk_decoder.h"

#include <algorithm>
#include <cstring>

namespace alcove::http {
namespace {

// 15 hex digits: no size can overflow.
constexpr unsigned kMostDigits = 15;
constexpr unsigned kMostExtension = 512;
constexpr unsigned kMostTrailer = 8 * 1024;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool is_text(char c) { return c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f); }

}  // namespace

ChunkDecoder::Step ChunkDecoder::decode(std::string_view input, std::span<char> output) {
  Step result;
  while (result.consumed < input.size() && state_ != State::kDone) {
    if (state_ == State::kData) {
      const uint64_t room = output.size() - result.produced;
      const auto count =
          static_cast<size_t>(std::min<uint64_t>({left_, room, input.size() - result.consumed}));
      if (count == 0) break;
      std::memcpy(output.data() + result.produced, input.data() + result.consumed, count);
      result.consumed += count;
      result.produced += count;
      data_taken(count);
      continue;
    }
    if (!step(input[result.consumed])) {
      result.valid = false;
      return result;
    }
    ++result.consumed;
  }
  return result;
}

void ChunkDecoder::data_taken(uint64_t count) {
  left_ -= count;
  if (left_ == 0) state_ = State::kDataCr;
}

bool ChunkDecoder::step(char c) {
  switch (state_) {
    case State::kSize:
      if (const int digit = hex_value(c); digit >= 0) {
        left_ = left_ * 16 + static_cast<unsigned>(digit);
        return ++digits_ <= kMostDigits;
      }
      if (digits_ == 0) return false;
      if (c == '\r') {
        state_ = State::kSizeEnd;
        return true;
      }
      state_ = State::kExtension;
      overhead_ = 0;
      return c == ';' || c == ' ' || c == '\t';
    case State::kExtension:
      if (c == '\r') {
        state_ = State::kSizeEnd;
        return true;
      }
      return is_text(c) && ++overhead_ <= kMostExtension;
    case State::kSizeEnd:
      state_ = left_ > 0 ? State::kData : State::kTrailerStart;
      digits_ = 0;
      overhead_ = 0;
      return c == '\n';
    case State::kDataCr:
      state_ = State::kDataLf;
      return c == '\r';
    case State::kDataLf:
      state_ = State::kSize;
      return c == '\n';
    case State::kTrailerStart:
      state_ = c == '\r' ? State::kLastLf : State::kTrailerLine;
      return c == '\r' || (is_text(c) && ++overhead_ <= kMostTrailer);
    case State::kTrailerLine:
      if (c == '\r') {
        state_ = State::kTrailerLf;
        return true;
      }
      return is_text(c) && ++overhead_ <= kMostTrailer;
    case State::kTrailerLf:
      state_ = State::kTrailerStart;
      return c == '\n';
    case State::kLastLf:
      state_ = State::kDone;
      return c == '\n';
    case State::kData:
    case State::kDone:
      break;
  }
  return false;
}

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/utf8.h"

#include <algorithm>

namespace alcove::interpreter {
namespace {

constexpr std::string_view kReplacementBytes = "\xEF\xBF\xBD";

unsigned byte_at(std::string_view text, size_t index) {
  return static_cast<unsigned char>(text[index]);
}

// How the first byte says that a sequence goes on, and which second bytes are allowed: overlong
// forms, surrogates and what lies beyond U+10FFFF are told by the second byte.
struct Lead {
  size_t length = 0;
  unsigned low = 0x80;
  unsigned high = 0xBF;
  uint32_t bits = 0;
};

Lead lead_of(unsigned byte) {
  if (byte >= 0xC2 && byte <= 0xDF) return {2, 0x80, 0xBF, byte & 0x1F};
  if (byte == 0xE0) return {3, 0xA0, 0xBF, 0};
  if (byte == 0xED) return {3, 0x80, 0x9F, byte & 0x0F};
  if (byte >= 0xE1 && byte <= 0xEF) return {3, 0x80, 0xBF, byte & 0x0F};
  if (byte == 0xF0) return {4, 0x90, 0xBF, 0};
  if (byte >= 0xF1 && byte <= 0xF3) return {4, 0x80, 0xBF, byte & 0x07};
  if (byte == 0xF4) return {4, 0x80, 0x8F, byte & 0x07};
  return {};
}

}  // namespace

CodePoint decode_code_point(std::string_view text) {
  const unsigned first = byte_at(text, 0);
  if (first < 0x80) return {first, 1, false};
  const Lead lead = lead_of(first);
  if (lead.length == 0) return {};
  uint32_t value = lead.bits;
  for (size_t i = 1; i < lead.length; ++i) {
    if (i == text.size()) return {CodePoint::kReplacement, i, true};
    const unsigned low = i == 1 ? lead.low : 0x80;
    const unsigned high = i == 1 ? lead.high : 0xBF;
    const unsigned byte = byte_at(text, i);
    if (byte < low || byte > high) return {CodePoint::kReplacement, i, false};
    value = value << 6 | (byte & 0x3F);
  }
  return {value, lead.length, false};
}

std::string Utf8Decoder::decode(std::string_view bytes) {
  std::string joined;
  if (!kept_.empty()) {
    joined = std::move(kept_);
    joined += bytes;
    kept_.clear();
    bytes = joined;
  }
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    const auto plain = std::find_if(bytes.begin(), bytes.end(), [](char c) { return c < 0; });
    out.append(bytes.begin(), plain);
    bytes.remove_prefix(static_cast<size_t>(plain - bytes.begin()));
    if (bytes.empty()) break;
    const CodePoint next = decode_code_point(bytes);
    if (next.cut_off) {
      kept_ = bytes;
      break;
    }
    const bool broken = next.value == CodePoint::kReplacement;
    out += broken ? kReplacementBytes : bytes.substr(0, next.length);
    bytes.remove_prefix(next.length);
  }
  return out;
}

std::string Utf8Decoder::finish() {
  if (kept_.empty()) return {};
  kept_.clear();
  return std::string(kReplacementBytes);
}

}  // namespace alcove::interpreter

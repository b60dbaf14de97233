// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/json_writer.h"

#include <cstdint>
#include <cstring>

#include "base/strings.h"

namespace alcove::connect {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101;
constexpr uint64_t kHighs = 0x8080808080808080;

uint64_t has_zero(uint64_t word) { return (word - kOnes) & ~word & kHighs; }

// Non-zero if one of the eight bytes is a control character, '"', '\' or not ASCII.
uint64_t needs_care(uint64_t word) {
  const uint64_t control = (word - kOnes * 0x20) & ~word & kHighs;
  return control | has_zero(word ^ kOnes * '"') | has_zero(word ^ kOnes * '\\') | (word & kHighs);
}

// The number of bytes from `at` that can be copied as they are.
size_t plain_run(std::string_view text, size_t at) {
  const size_t start = at;
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof word);
    if (needs_care(word) != 0) break;
  }
  for (; at < text.size(); ++at) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x20 || byte >= 0x80 || byte == '"' || byte == '\\') break;
  }
  return at - start;
}

void append_escape(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  size_t at = 0;
  for (;;) {
    const size_t run = plain_run(text, at);
    out.append(text, at, run);
    at += run;
    if (at == text.size()) break;
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      append_escape(out, text[at]);
      ++at;
    } else if (const size_t length = utf8_sequence_length(text, at); length > 0) {
      out.append(text, at, length);
      at += length;
    } else {
      out += kReplacementCharacter;
      ++at;
    }
  }
  out += '"';
}

}  // namespace alcove::connect

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/base64.h"

#include <array>
#include <cstdint>
#include <cstring>

namespace alcove {
namespace {

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Two characters for every 12 bits: half the lookups of one character for 6.
struct Pairs {
  char text[4096][2];
};

constexpr Pairs make_pairs() {
  Pairs pairs{};
  for (unsigned i = 0; i < 4096; ++i) {
    pairs.text[i][0] = kAlphabet[i >> 6];
    pairs.text[i][1] = kAlphabet[i & 63];
  }
  return pairs;
}

constexpr Pairs kPairs = make_pairs();
constexpr uint8_t kLastDigit = 63;
constexpr uint8_t kNoDigit = 0xFF;

constexpr std::array<uint8_t, 256> make_digits() {
  std::array<uint8_t, 256> digits{};
  digits.fill(kNoDigit);
  for (uint8_t i = 0; i < 64; ++i) digits[static_cast<uint8_t>(kAlphabet[i])] = i;
  digits['-'] = 62;
  digits['_'] = 63;
  return digits;
}

constexpr std::array<uint8_t, 256> kDigits = make_digits();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4);
  char* to = out.data() + start;
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  for (; left >= 3; left -= 3, from += 3, to += 4) {
    std::memcpy(to, kPairs.text[from[0] << 4 | from[1] >> 4], 2);
    std::memcpy(to + 2, kPairs.text[(from[1] & 15) << 8 | from[2]], 2);
  }
  if (left > 0) {
    const unsigned second = left == 2 ? from[1] : 0;
    std::memcpy(to, kPairs.text[from[0] << 4 | second >> 4], 2);
    to[2] = left == 2 ? kAlphabet[(second & 15) << 2] : '=';
    to[3] = '=';
  }
}

std::string to_base64(std::string_view bytes) {
  std::string out;
  append_base64(out, bytes);
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 == 0 && text.ends_with("==")) {
    text.remove_suffix(2);
  } else if (text.size() % 4 == 0 && text.ends_with('=')) {
    text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return std::nullopt;
  const auto digit = [text](size_t at) -> uint32_t {
    return kDigits[static_cast<uint8_t>(text[at])];
  };
  std::string out(text.size() / 4 * 3, '\0');
  size_t at = 0;
  for (char* to = out.data(); at + 4 <= text.size(); at += 4, to += 3) {
    const uint32_t digits[] = {digit(at), digit(at + 1), digit(at + 2), digit(at + 3)};
    if ((digits[0] | digits[1] | digits[2] | digits[3]) > kLastDigit) return std::nullopt;
    to[0] = static_cast<char>(digits[0] << 2 | digits[1] >> 4);
    to[1] = static_cast<char>(digits[1] << 4 | digits[2] >> 2);
    to[2] = static_cast<char>(digits[2] << 6 | digits[3]);
  }
  uint32_t bits = 0;
  for (size_t i = at; i < text.size(); ++i) {
    if (digit(i) > kLastDigit) return std::nullopt;
    bits = bits << 6 | digit(i);
  }
  if (text.size() - at == 2) out += static_cast<char>(bits >> 4);
  if (text.size() - at == 3) {
    out += static_cast<char>(bits >> 10);
    out += static_cast<char>(bits >> 2);
  }
  return out;
}

}  // namespace alcove

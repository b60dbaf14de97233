// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/base64.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

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

#if defined(__x86_64__)

// 24 bytes become 32 characters at a time. Returns how many bytes were encoded: all but the last
// few, because each step reads 4 bytes more than it takes.
__attribute__((target("avx2"))) size_t encode_by_avx2(const unsigned char* from, size_t size,
                                                      char* to) {
  constexpr size_t kTaken = 24;
  constexpr size_t kRead = 28;
  // Per 32 bits: three bytes a, b, c as b, a, c, b. Read as two numbers of 16 bits, low end first,
  // the first one holds the digits 0 and 1, the second one 2 and 3.
  const __m256i spread = _mm256_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10,  //
                                          1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10);
  // What is added to a digit, by its class: 0 for 26..51, 1 to 10 for 52..61, 11 for 62, 12 for 63,
  // 13 for 0..25.
  constexpr char kLower = 'a' - 26;
  constexpr char kNumber = '0' - 52;
  constexpr char kPlus = '+' - 62;
  constexpr char kSlash = '/' - 63;
  const __m256i added = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(kLower, kNumber, kNumber, kNumber, kNumber, kNumber, kNumber, kNumber, kNumber,
                    kNumber, kNumber, kPlus, kSlash, 'A', 0, 0));
  size_t done = 0;
  for (; size - done >= kRead; done += kTaken, to += 32) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + 12));
    const __m256i words = _mm256_shuffle_epi8(_mm256_set_m128i(high, low), spread);
    // A multiplication by a power of two is a shift, here by another distance for each number.
    const __m256i even = _mm256_mulhi_epu16(_mm256_and_si256(words, _mm256_set1_epi32(0x0FC0FC00)),
                                            _mm256_set1_epi32(0x04000040));
    const __m256i odd = _mm256_mullo_epi16(_mm256_and_si256(words, _mm256_set1_epi32(0x003F03F0)),
                                           _mm256_set1_epi32(0x01000010));
    const __m256i digits = _mm256_or_si256(even, odd);
    const __m256i upper = _mm256_cmpgt_epi8(_mm256_set1_epi8(26), digits);
    const __m256i classes = _mm256_or_si256(_mm256_subs_epu8(digits, _mm256_set1_epi8(51)),
                                            _mm256_and_si256(upper, _mm256_set1_epi8(13)));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_add_epi8(digits, _mm256_shuffle_epi8(added, classes)));
  }
  return done;
}

size_t encode_by_vectors(const unsigned char* from, size_t size, char* to) {
  static const bool available = __builtin_cpu_supports("avx2") != 0;
  return available ? encode_by_avx2(from, size, to) : 0;
}

#else

size_t encode_by_vectors(const unsigned char*, size_t, char*) { return 0; }

#endif

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const size_t start = out.size();
  out.resize(start + (bytes.size() + 2) / 3 * 4);
  char* to = out.data() + start;
  const auto* from = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  const size_t done = encode_by_vectors(from, left, to);
  from += done;
  to += done / 3 * 4;
  left -= done;
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

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/base64.h"

#include <gtest/gtest.h>

namespace alcove {
namespace {

TEST(Base64, EncodesTheVectorsOfRfc4648) {
  EXPECT_EQ(to_base64(""), "");
  EXPECT_EQ(to_base64("f"), "Zg==");
  EXPECT_EQ(to_base64("fo"), "Zm8=");
  EXPECT_EQ(to_base64("foo"), "Zm9v");
  EXPECT_EQ(to_base64("foob"), "Zm9vYg==");
  EXPECT_EQ(to_base64("fooba"), "Zm9vYmE=");
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
}

TEST(Base64, AppendsAfterWhatIsThere) {
  std::string out = "x";
  append_base64(out, "foo");
  EXPECT_EQ(out, "xZm9v");
}

TEST(Base64, RoundTripsEveryLengthAndByte) {
  std::string bytes;
  for (int i = 0; i < 1000; ++i) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
    bytes += static_cast<char>(i * 7 + i / 256);
  }
}

// One character for 6 bits, straight from the definition.
std::string encode_slowly(std::string_view bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (size_t bit = 0; bit < bytes.size() * 8; bit += 6) {
    unsigned digit = 0;
    for (size_t i = bit; i < bit + 6; ++i) {
      const unsigned byte = i / 8 < bytes.size() ? static_cast<unsigned char>(bytes[i / 8]) : 0;
      digit = digit << 1 | (byte >> (7 - i % 8) & 1);
    }
    out += kDigits[digit];
  }
  while (out.size() % 4 != 0) out += '=';
  return out;
}

TEST(Base64, AgreesWithTheDefinition) {
  std::string bytes;
  uint32_t state = 1;
  for (int i = 0; i < 700; ++i) {
    state = state * 1664525 + 1013904223;
    bytes += static_cast<char>(state >> 24);
    ASSERT_EQ(to_base64(bytes), encode_slowly(bytes)) << i;
  }
}

TEST(Base64, DecodesBothAlphabetsWithAndWithoutPadding) {
  for (const std::string_view text : {"+/+/+w==", "+/+/+w", "-_-_-w==", "-_-_-w"}) {
    EXPECT_EQ(from_base64(text), "\xfb\xff\xbf\xfb") << text;
  }
}

TEST(Base64, RefusesEverythingElse) {
  for (const std::string_view text :
       {"A", "AAAAA", "A===", "====", "=", "AA=A", "AA A", "AAA\n", "AA=", "AAAA=",
        "A\x80"
        "AA"}) {
    EXPECT_EQ(from_base64(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace alcove

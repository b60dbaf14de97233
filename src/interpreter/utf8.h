// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace alcove::interpreter {

struct CodePoint {
  static constexpr uint32_t kReplacement = 0xFFFD;
  uint32_t value = kReplacement;
  // How many bytes it took; at least one.
  size_t length = 1;
  // The text ends in the middle of what may be a valid sequence.
  bool cut_off = false;
};

// The first code point of a text that is not empty; U+FFFD for bytes that are no UTF-8.
CodePoint decode_code_point(std::string_view text);

// Decodes what a program prints, piece by piece: a sequence that a read has cut in two is kept
// until its rest is there, and bytes that are no UTF-8 become U+FFFD.
class Utf8Decoder {
 public:
  // What can be told of everything so far.
  std::string decode(std::string_view bytes);
  // Nothing follows: what was kept is broken.
  std::string finish();

 private:
  std::string kept_;
};

}  // namespace alcove::interpreter

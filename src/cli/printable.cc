// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/printable.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

#include "base/strings.h"

namespace alcove::cli {
namespace {

struct Character {
  uint32_t value = 0;
  // 0: the first byte does not start a well-formed character.
  size_t size = 0;
};

Character first_character(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const size_t size = lead < 0x80 ? 1 : lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (text.size() < size || !is_valid_utf8(text.substr(0, size))) return {};
  uint32_t value = size == 1 ? lead : lead & (0xffu >> (size + 1));
  for (size_t i = 1; i < size; ++i) {
    value = value << 6 | (static_cast<unsigned char>(text[i]) & 0x3f);
  }
  return {value, size};
}

bool is_harmful(uint32_t c) {
  const bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  const bool line_end = c == 0x2028 || c == 0x2029;
  const bool direction = c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
                         (c >= 0x2066 && c <= 0x2069);
  return control || line_end || direction || c == 0xfeff;
}

template <typename... Values>
void append_format(std::string& out, const char* format, Values... values) {
  char buffer[16];
  std::snprintf(buffer, sizeof buffer, format, values...);
  out += buffer;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character character = first_character(text);
    const size_t size = std::max(character.size, size_t{1});
    if (character.size == 0) {
      append_format(out, "\\x%02x", static_cast<unsigned char>(text[0]));
    } else if (character.value < 0x80 && is_harmful(character.value)) {
      append_format(out, "\\x%02x", character.value);
    } else if (is_harmful(character.value)) {
      append_format(out, "\\u%04x", character.value);
    } else {
      out += text.substr(0, size);
    }
    text.remove_prefix(size);
  }
  return out;
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace alcove::cli

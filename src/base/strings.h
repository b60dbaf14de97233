// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <charconv>
#include <concepts>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace alcove {

// Joins pieces of text and numbers: cat("port ", 80). The static programs have no fmt.
inline void append_piece(std::string& out, std::string_view piece) { out += piece; }
inline void append_piece(std::string& out, char piece) { out += piece; }
template <typename T>
  requires(std::integral<T> && !std::same_as<T, char> && !std::same_as<T, bool>)
void append_piece(std::string& out, T piece) {
  out += std::to_string(piece);
}
template <typename... Pieces>
std::string cat(const Pieces&... pieces) {
  std::string out;
  (append_piece(out, pieces), ...);
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
bool equal_ignoring_case(std::string_view a, std::string_view b);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The whole text as a decimal number; nothing for anything else (sign, blanks, overflow).
template <std::integral T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return {};
  return value;
}

// The length of the well-formed UTF-8 sequence at `at`; 0 if there is none.
size_t utf8_sequence_length(std::string_view text, size_t at);
// True for well-formed UTF-8 (no overlong forms, surrogates or values above U+10FFFF).
bool is_valid_utf8(std::string_view text);
// U+FFFD instead of each byte that is not part of well-formed UTF-8.
inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";
std::string to_valid_utf8(std::string_view text);

}  // namespace alcove

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/media_type.h"

#include <algorithm>

#include "base/strings.h"
#include "http/url.h"

namespace alcove::agent {
namespace {

bool is_special(char c) {
  return std::string_view("()<>@,;:\\\"/[]?=").find(c) != std::string_view::npos;
}

bool is_token_char(char c) { return c > 0x20 && c < 0x7f && !is_special(c); }

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

std::string_view take_token(std::string_view& text) {
  size_t length = 0;
  while (length < text.size() && is_token_char(text[length])) ++length;
  const std::string_view token = text.substr(0, length);
  text.remove_prefix(length);
  return token;
}

// A backslash escapes special characters only: browsers send Windows paths unescaped.
std::optional<std::string> take_quoted(std::string_view& text) {
  text.remove_prefix(1);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      text.remove_prefix(i + 1);
      return out;
    }
    if (c == '\r' || c == '\n') return {};
    if (c == '\\' && i + 1 < text.size() && is_special(text[i + 1])) ++i;
    out += text[i];
  }
  return {};
}

// "utf-8'en'%e2%82%ac" of RFC 5987.
std::optional<std::string> decode_extended(std::string_view text) {
  const size_t first = text.find('\'');
  if (first == std::string_view::npos) return {};
  const size_t second = text.find('\'', first + 1);
  if (second == std::string_view::npos) return {};
  const std::string_view charset = text.substr(0, first);
  if (!equal_ignoring_case(charset, "utf-8") && !equal_ignoring_case(charset, "us-ascii")) {
    return {};
  }
  return http::percent_decode(text.substr(second + 1));
}

}  // namespace

std::optional<MediaType> parse_media_type(std::string_view text) {
  MediaType result;
  const size_t semicolon = std::min(text.find(';'), text.size());
  result.value = to_lower(trim(text.substr(0, semicolon)));
  if (result.value.empty()) return {};
  text.remove_prefix(semicolon);
  std::map<std::string, std::string> extended;
  for (;;) {
    text = trim(text);
    if (text.empty()) break;
    if (text.front() != ';') return {};
    text.remove_prefix(1);
    text = trim(text);
    if (text.empty()) break;
    const std::string name = to_lower(take_token(text));
    if (name.empty()) return {};
    text = trim(text);
    if (text.empty() || text.front() != '=') return {};
    text.remove_prefix(1);
    text = trim(text);
    std::string value;
    if (!text.empty() && text.front() == '"') {
      auto quoted = take_quoted(text);
      if (!quoted) return {};
      value = *std::move(quoted);
    } else {
      value = take_token(text);
      if (value.empty()) return {};
    }
    if (name.ends_with('*')) {
      if (auto decoded = decode_extended(value)) {
        extended[name.substr(0, name.size() - 1)] = *std::move(decoded);
      }
      continue;
    }
    if (!result.parameters.emplace(name, std::move(value)).second) return {};
  }
  for (auto& [name, value] : extended) result.parameters[name] = std::move(value);
  return result;
}

std::string inline_disposition(std::string_view file_name) {
  const bool ascii =
      std::all_of(file_name.begin(), file_name.end(), [](char c) { return c >= 0x20 && c < 0x7f; });
  if (!ascii) return cat("inline; filename*=utf-8''", http::percent_encode(file_name));
  if (is_token(file_name)) return cat("inline; filename=", file_name);
  std::string quoted = "inline; filename=\"";
  for (const char c : file_name) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  quoted += '"';
  return quoted;
}

}  // namespace alcove::agent

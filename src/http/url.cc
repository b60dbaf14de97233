// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/url.h"

#include "base/strings.h"

namespace alcove::http {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, char plus) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += plus;
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return out;
}

bool is_unreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

}  // namespace

std::optional<std::string> percent_decode(std::string_view text) {
  return decode(text, /*plus=*/'+');
}

std::optional<std::string> form_decode(std::string_view text) { return decode(text, /*plus=*/' '); }

std::string percent_encode(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (const char c : text) {
    if (is_unreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kDigits[byte >> 4];
      out += kDigits[byte & 15];
    }
  }
  return out;
}

std::optional<QueryParameters> parse_query(std::string_view query) {
  QueryParameters parameters;
  for (const std::string_view part : split(query, '&')) {
    if (part.empty()) continue;
    const size_t equals = part.find('=');
    auto name = form_decode(part.substr(0, equals));
    auto value = form_decode(equals == std::string_view::npos ? std::string_view{}
                                                              : part.substr(equals + 1));
    if (!name || !value) return std::nullopt;
    parameters.emplace_back(std::move(*name), std::move(*value));
  }
  return parameters;
}

std::optional<std::string_view> find_parameter(const QueryParameters& parameters,
                                               std::string_view name) {
  for (const auto& [key, value] : parameters) {
    if (key == name) return value;
  }
  return std::nullopt;
}

std::optional<std::vector<std::string>> path_segments(std::string_view raw_path) {
  std::vector<std::string> segments;
  for (const std::string_view part : split(raw_path, '/')) {
    if (part.empty()) continue;
    auto segment = percent_decode(part);
    if (!segment) return std::nullopt;
    segments.push_back(std::move(*segment));
  }
  return segments;
}

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/target.h"

#include <array>
#include <string>
#include <vector>

#include "base/strings.h"

namespace alcove::gateway {
namespace {

constexpr std::array<std::string_view, 8> kControlNames = {
    "init", "freeze", "unfreeze", "fsfreeze", "fsthaw", "collapse", "upgrade", "journal"};

// How often a path is decoded before it counts as malicious.
constexpr int kMaxDecodings = 8;

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Decodes what can be decoded and leaves broken escapes as they are.
std::string decode_leniently(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

std::string_view plain_segment(std::string_view segment) {
  segment = segment.substr(0, segment.find_first_of(std::string_view(";\0", 2)));
  return trim(segment);
}

bool names_control_call(std::string_view decoded) {
  std::vector<std::string_view> kept;
  size_t at = 0;
  while (at <= decoded.size()) {
    size_t end = decoded.find_first_of("/\\", at);
    if (end == std::string_view::npos) end = decoded.size();
    const std::string_view segment = plain_segment(decoded.substr(at, end - at));
    at = end + 1;
    if (segment.empty() || segment == ".") continue;
    if (segment == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(segment);
    }
  }
  if (kept.size() != 1) return false;
  for (const std::string_view name : kControlNames) {
    if (equal_ignoring_case(kept.front(), name)) return true;
  }
  return false;
}

}  // namespace

std::string_view Target::query() const {
  const size_t at = path_and_query.find('?');
  return at == std::string_view::npos ? std::string_view{} : path_and_query.substr(at + 1);
}

Target split_target(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (target.size() < scheme.size() ||
        !equal_ignoring_case(target.substr(0, scheme.size()), scheme)) {
      continue;
    }
    const std::string_view rest = target.substr(scheme.size());
    const size_t end = rest.find_first_of("/?#\\");
    if (end == std::string_view::npos) return {.authority = rest, .path_and_query = {}};
    return {.authority = rest.substr(0, end), .path_and_query = rest.substr(end)};
  }
  return {.authority = {}, .path_and_query = target};
}

bool is_agent_control_path(std::string_view path) {
  path = path.substr(0, path.find_first_of("?#"));
  // Nearly every request: no escape, so one look is enough.
  if (path.find('%') == std::string_view::npos) return names_control_call(path);
  std::string decoded(path);
  for (int i = 0; i < kMaxDecodings; ++i) {
    if (names_control_call(decoded)) return true;
    std::string next = decode_leniently(decoded);
    if (next == decoded) return false;
    decoded = std::move(next);
    // An escaped '?' or '#' ends the path for whoever decodes before splitting.
    if (names_control_call(std::string_view(decoded).substr(0, decoded.find_first_of("?#")))) {
      return true;
    }
  }
  // Nobody encodes a path this often for an honest reason.
  return true;
}

}  // namespace alcove::gateway

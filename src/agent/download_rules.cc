// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/download_rules.h"

#include <algorithm>
#include <array>
#include <utility>

#include "agent/http_date.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

// Names of codings with "q=0" are refused ones; the exact weight of others does not matter here.
struct Coding {
  std::string name;
  bool accepted = true;
};

std::vector<Coding> parse_codings(std::string_view text) {
  std::vector<Coding> codings;
  for (const std::string_view item : split(text, ',')) {
    const auto parts = split(item, ';');
    Coding coding{to_lower(trim(parts[0])), true};
    if (coding.name.empty()) continue;
    for (size_t i = 1; i < parts.size(); ++i) {
      const std::string parameter = to_lower(trim(parts[i]));
      if (!parameter.starts_with("q=")) continue;
      const std::string_view weight = std::string_view(parameter).substr(2);
      coding.accepted = weight.find_first_not_of("0.") != std::string_view::npos;
    }
    codings.push_back(std::move(coding));
  }
  return codings;
}

std::optional<bool> accepted(const std::vector<Coding>& codings, std::string_view name) {
  const auto found =
      std::find_if(codings.begin(), codings.end(), [&](const Coding& c) { return c.name == name; });
  if (found == codings.end()) return {};
  return found->accepted;
}

bool needs_plain_bytes(const http::Headers& headers) {
  constexpr std::array<std::string_view, 6> kNames = {
      "Range", "If-Modified-Since", "If-Range", "If-Unmodified-Since", "If-None-Match", "If-Match"};
  return std::any_of(kNames.begin(), kNames.end(),
                     [&](std::string_view name) { return headers.has(name); });
}

}  // namespace

Encoding choose_encoding(const http::Headers& headers) {
  const auto header = headers.get("Accept-Encoding");
  if (!header) return Encoding::kIdentity;
  const auto codings = parse_codings(*header);
  const auto star = accepted(codings, "*");
  const bool identity = accepted(codings, "identity").value_or(star.value_or(true));
  const bool gzip = accepted(codings, "gzip").value_or(star.value_or(false));
  if (needs_plain_bytes(headers)) return identity ? Encoding::kIdentity : Encoding::kNotAcceptable;
  if (!identity) return gzip ? Encoding::kGzip : Encoding::kNotAcceptable;
  const bool gzip_alone = codings.size() == 1 && codings[0].name == "gzip" && gzip;
  return gzip_alone ? Encoding::kGzip : Encoding::kIdentity;
}

int conditional_status(const http::Headers& headers, int64_t modified) {
  // Files have no entity tags: none that a client names can be theirs, only "*" is.
  if (const auto tags = headers.get("If-Match")) {
    if (trim(*tags) != "*") return 412;
  } else if (const auto header = headers.get("If-Unmodified-Since")) {
    const auto time = parse_http_date(*header);
    if (time && modified > *time) return 412;
  }
  if (const auto tags = headers.get("If-None-Match")) {
    if (trim(*tags) == "*") return 304;
  } else if (const auto header = headers.get("If-Modified-Since")) {
    const auto time = parse_http_date(*header);
    if (time && modified <= *time) return 304;
  }
  return 0;
}

std::optional<std::string_view> type_by_extension(std::string_view file_name) {
  using Entry = std::pair<std::string_view, std::string_view>;
  constexpr std::array<Entry, 28> kTypes = {{
      {"css", "text/css; charset=utf-8"},
      {"csv", "text/csv; charset=utf-8"},
      {"gif", "image/gif"},
      {"gz", "application/gzip"},
      {"htm", "text/html; charset=utf-8"},
      {"html", "text/html; charset=utf-8"},
      {"ico", "image/vnd.microsoft.icon"},
      {"jpeg", "image/jpeg"},
      {"jpg", "image/jpeg"},
      {"js", "text/javascript; charset=utf-8"},
      {"json", "application/json"},
      {"md", "text/markdown; charset=utf-8"},
      {"mjs", "text/javascript; charset=utf-8"},
      {"mp3", "audio/mpeg"},
      {"mp4", "video/mp4"},
      {"pdf", "application/pdf"},
      {"png", "image/png"},
      {"py", "text/x-python; charset=utf-8"},
      {"svg", "image/svg+xml"},
      {"tar", "application/x-tar"},
      {"txt", "text/plain; charset=utf-8"},
      {"wasm", "application/wasm"},
      {"wav", "audio/x-wav"},
      {"webm", "video/webm"},
      {"webp", "image/webp"},
      {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
      {"xml", "text/xml; charset=utf-8"},
      {"zip", "application/zip"},
  }};
  const size_t dot = file_name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string extension = to_lower(file_name.substr(dot + 1));
  for (const auto& [name, type] : kTypes) {
    if (name == extension) return type;
  }
  return {};
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/byte_ranges.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "agent/http_date.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

// Nothing if the text is no range; a range of 0 bytes if it lies outside of the file.
std::optional<ByteRange> parse_range(std::string_view text, uint64_t size) {
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {};
  const std::string_view first_text = trim(text.substr(0, dash));
  const std::string_view last_text = trim(text.substr(dash + 1));
  const auto first = parse_number<uint64_t>(first_text);
  const auto last = parse_number<uint64_t>(last_text);
  if (first_text.empty()) {
    if (!last) return {};
    const uint64_t count = std::min(*last, size);
    return ByteRange{size - count, count};
  }
  if (!first || (!last && !last_text.empty()) || (last && *last < *first)) return {};
  if (*first >= size) return ByteRange{};
  const uint64_t end = last ? std::min(*last, size - 1) : size - 1;
  return ByteRange{*first, end - *first + 1};
}

}  // namespace

Selection select_ranges(const http::Headers& headers, uint64_t size, int64_t modified) {
  const Selection whole;
  const auto header = headers.get("Range");
  // Nothing of an empty file can be outside of it: clients that always send a range get the file.
  if (!header || !header->starts_with("bytes=") || size == 0) return whole;
  if (const auto condition = headers.get("If-Range")) {
    // Without ETags only an exact date can match.
    if (parse_http_date(*condition) != modified) return whole;
  }
  Selection selection{Selection::Kind::kParts, {}};
  uint64_t room = size;
  size_t asked = 0;
  for (const std::string_view item : split(header->substr(6), ',')) {
    const std::string_view text = trim(item);
    if (text.empty()) continue;  // lists may have empty elements
    const auto range = parse_range(text, size);
    if (!range || ++asked > kMostRanges || range->count > room) return whole;
    if (range->count == 0) continue;
    room -= range->count;
    selection.parts.push_back(*range);
  }
  if (asked == 0) return whole;
  if (selection.parts.empty()) selection.kind = Selection::Kind::kUnsatisfiable;
  return selection;
}

std::string content_range(const ByteRange& range, uint64_t size) {
  return cat("bytes ", range.offset, "-", range.offset + range.count - 1, "/", size);
}

RangeParts::RangeParts(std::vector<ByteRange> ranges, uint64_t size, std::string_view content_type,
                       std::string boundary)
    : ranges_(std::move(ranges)), boundary_(std::move(boundary)) {
  for (const ByteRange& range : ranges_) {
    heads_.push_back(cat(heads_.empty() ? "" : "\r\n", "--", boundary_,
                         "\r\nContent-Type: ", content_type,
                         "\r\nContent-Range: ", content_range(range, size), "\r\n\r\n"));
  }
}

std::string RangeParts::content_type() const {
  return cat("multipart/byteranges; boundary=", boundary_);
}

uint64_t RangeParts::length() const {
  uint64_t length = end().size();
  for (const std::string& head : heads_) length += head.size();
  for (const ByteRange& range : ranges_) length += range.count;
  return length;
}

std::string RangeParts::end() const { return cat("\r\n--", boundary_, "--\r\n"); }

}  // namespace alcove::agent

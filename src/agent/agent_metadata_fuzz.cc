// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Metadata in the header fields of uploads: what is taken fits into a file's attributes and comes
// back from a header field as it was.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/metadata.h"
#include "base/assert.h"
#include "base/strings.h"
#include "http/headers.h"

namespace {

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  http::Headers headers;
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = std::min(line.find(':'), line.size());
    const std::string_view value = line.substr(std::min(colon + 1, line.size()));
    headers.add(std::string(line.substr(0, colon)), std::string(trim(value)));
  }
  const auto metadata = agent::parse_metadata_headers(headers);
  if (!metadata) {
    ALCOVE_ASSERT(metadata.error().code() == Code::kInvalidArgument);
    return 0;
  }
  size_t total = 0;
  http::Headers again;
  for (const auto& [key, value] : *metadata) {
    ALCOVE_ASSERT(!key.empty() && key.size() <= 246 && key == to_lower(key));
    ALCOVE_ASSERT(is_printable(key) && is_printable(value));
    total += 9 + key.size() + value.size();
    again.add("X-Metadata-" + key, value);
  }
  ALCOVE_ASSERT(total <= 4096);
  const auto same = agent::parse_metadata_headers(again);
  ALCOVE_ASSERT(same && *same == *metadata);
  return 0;
}

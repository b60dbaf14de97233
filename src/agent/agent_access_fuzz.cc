// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The query, headers and signature of a /files request: nobody gets in without the token.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/access.h"
#include "agent/byte_ranges.h"
#include "agent/download_rules.h"
#include "agent/files_query.h"
#include "agent/http_date.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::agent;
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string token = "a token that no input contains: 5b1c9a7e";
  if (const auto query = parse_files_query(text)) {
    FileAccess access{FileOperation::kRead, query->path.value_or(""), query->username.value_or(""),
                      query->signature, query->expiration};
    ALCOVE_ASSERT(!check_file_access({}, access, token, 0));
    ALCOVE_ASSERT(check_file_access({}, access, std::nullopt, 0));
    access.signature = file_signature(access, token);
    const bool expired = access.expiration && *access.expiration < 1000;
    ALCOVE_ASSERT(check_file_access({}, access, token, 1000).has_value() == !expired);
  }
  const alcove::http::Headers headers = {
      {"Authorization", text},    {"Accept-Encoding", text}, {"Range", text},
      {"If-Range", text},         {"If-Match", text},        {"If-None-Match", text},
      {"If-Modified-Since", text}};
  (void)basic_user(headers);
  (void)choose_encoding(headers);
  (void)conditional_status(headers, 1000);
  (void)parse_http_date(text);
  constexpr uint64_t kSize = 1000;
  uint64_t total = 0;
  for (const ByteRange& range : select_ranges({{"Range", text}}, kSize, 0).parts) {
    ALCOVE_ASSERT(range.offset + range.count <= kSize);
    total += range.count;
  }
  // Overlapping ranges must not make a small request a large answer.
  ALCOVE_ASSERT(total <= kSize);
  return 0;
}

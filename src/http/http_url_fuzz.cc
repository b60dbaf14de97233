// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Decoding of arbitrary paths and queries.

#include <cstdint>

#include "base/assert.h"
#include "http/url.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::http;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  ALCOVE_ASSERT(percent_decode(percent_encode(input)) == input);
  ALCOVE_ASSERT(form_decode(percent_encode(input)) == input);
  if (const auto segments = path_segments(input)) {
    std::string path;
    for (const std::string& segment : *segments) path += "/" + percent_encode(segment);
    ALCOVE_ASSERT(path_segments(path) == segments);
  }
  if (const auto parameters = parse_query(input)) {
    std::string query;
    for (const auto& [name, value] : *parameters) {
      query += percent_encode(name) + "=" + percent_encode(value) + "&";
    }
    ALCOVE_ASSERT(parse_query(query) == parameters);
  }
  return 0;
}

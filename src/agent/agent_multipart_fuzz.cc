// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Forms: any bytes, in any pieces, give the same parts as the same bytes at once.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/media_type.h"
#include "agent/multipart.h"
#include "base/assert.h"

namespace alcove::agent {
namespace {

// What came out, as text; the length of the pieces must not matter.
std::string parse(std::string_view body, size_t step) {
  MultipartParser parser("b");
  std::string out;
  bool in_part = false;
  for (;;) {
    const auto event = parser.next();
    if (!event) return out + "|error";
    switch (event->kind) {
      case MultipartParser::Kind::kNeedMore:
        if (body.empty()) {
          parser.feed_end();
        } else {
          parser.feed(body.substr(0, step));
          body.remove_prefix(std::min(step, body.size()));
        }
        break;
      case MultipartParser::Kind::kPart:
        ALCOVE_ASSERT(!in_part);
        in_part = true;
        out += "|part " + event->part.name + event->part.file_name.value_or("-") + "|";
        break;
      case MultipartParser::Kind::kData:
        ALCOVE_ASSERT(in_part && !event->data.empty());
        out += event->data;
        break;
      case MultipartParser::Kind::kPartEnd:
        ALCOVE_ASSERT(in_part);
        in_part = false;
        break;
      case MultipartParser::Kind::kEnd:
        ALCOVE_ASSERT(!in_part);
        return out + "|end";
    }
  }
}

}  // namespace
}  // namespace alcove::agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::agent;
  if (size == 0) return 0;
  const size_t step = data[0] % 16 + 1;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::string whole = parse(body, body.size() + 1);
  const std::string pieces = parse(body, step);
  // A broken form may show more or less of its last part before the error.
  if (whole.ends_with("|end") || pieces.ends_with("|end")) ALCOVE_ASSERT(whole == pieces);
  (void)parse_media_type(body);
  const std::string disposition = inline_disposition(body);
  ALCOVE_ASSERT(disposition.find_first_of("\r\n") == std::string::npos);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a language runner sends, which shares its process with the user's code: frames are the same
// however the bytes are cut, and every event becomes one line of plain ASCII.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "interpreter/result_fields.h"
#include "interpreter/runner_frames.h"

namespace {

using namespace alcove::interpreter;

std::vector<std::string> cut(std::string_view bytes, size_t piece) {
  std::vector<std::string> frames;
  FrameParser parser;
  while (!bytes.empty()) {
    parser.append(bytes.substr(0, piece));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    for (;;) {
      auto frame = parser.next();
      if (!frame) return frames;
      if (!*frame) break;
      frames.push_back(std::move(**frame));
    }
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const auto frames = cut(bytes, size);
  ALCOVE_ASSERT(cut(bytes, 3) == frames);
  for (const std::string& frame : frames) {
    const RunnerMessage message = parse_runner_message(frame);
    const auto* event = std::get_if<RunnerEvent>(&message);
    if (event == nullptr) continue;
    const std::string line = event_line(event->event, "t");
    ALCOVE_ASSERT(line.ends_with('\n'));
    for (const char c : std::string_view(line).substr(0, line.size() - 1)) {
      ALCOVE_ASSERT(c >= 0x20 && c <= 0x7E);
    }
  }
  return 0;
}

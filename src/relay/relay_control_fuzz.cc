// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Messages between server and relay: what is accepted is encoded to the same bytes again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "relay/control_messages.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::relay;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto request = decode_request(bytes)) ALCOVE_ASSERT(encode(*request) == bytes);
  if (const auto answer = decode_answer(bytes)) ALCOVE_ASSERT(encode(*answer) == bytes);
  return 0;
}

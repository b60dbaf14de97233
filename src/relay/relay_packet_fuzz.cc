// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Packets of a sandbox's queue, in and without their netlink message.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "relay/queued_packet.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::relay;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto key = parse_connection_request(bytes)) {
    // Both headers were there.
    ALCOVE_ASSERT(size >= 40);
    ALCOVE_ASSERT(key->to.family() == AF_INET6 || (data[0] >> 4) == 4 || size >= 60);
  }
  if (const auto packet = parse_queued_packet(bytes)) {
    ALCOVE_ASSERT(!packet->connection || size >= 60);
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Compressed bodies: any bytes, in any pieces, give what the same bytes at once give; what we
// compress comes back.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/gzip.h"
#include "agent/testing/memory_body.h"
#include "base/assert.h"
#include "net/testing/loop_runner.h"

namespace alcove::agent {
namespace {

constexpr uint64_t kMost = 1 << 20;

Result<std::string> unpack(std::string_view packed, size_t step) {
  boost::asio::io_context loop(1);
  testing::MemoryBody inner(std::string(packed), step);
  GunzipBody body(inner);
  ALCOVE_ASSERT(!body.length());
  return net::testing::run(loop, body.read_all(kMost));
}

std::string pack(std::string_view text) {
  GzipWriter writer;
  std::string out = writer.add(text);
  return out + writer.finish();
}

}  // namespace
}  // namespace alcove::agent

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::agent;
  if (size == 0) return 0;
  const size_t step = data[0] % 16 + 1;
  const std::string_view body(reinterpret_cast<const char*>(data) + 1, size - 1);
  const auto whole = unpack(body, body.size() + 1);
  const auto pieces = unpack(body, step);
  ALCOVE_ASSERT(whole.has_value() == pieces.has_value());
  if (whole) {
    ALCOVE_ASSERT(*whole == *pieces);
  } else {
    ALCOVE_ASSERT(whole.error().code() == pieces.error().code());
  }
  const auto back = unpack(pack(body), step);
  ALCOVE_ASSERT(back && *back == body);
  return 0;
}

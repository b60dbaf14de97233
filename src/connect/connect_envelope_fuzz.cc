// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Envelopes in arbitrary bytes that arrive in arbitrary pieces. The first byte sets the size of
// the pieces.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/assert.h"
#include "connect/connect.h"
#include "http/testing/loop_runner.h"

namespace alcove::connect {
namespace {

class PiecesBody final : public http::BodyReader {
 public:
  PiecesBody(std::string_view data, size_t piece) : left_(data), piece_(piece) {}
  Task<Result<size_t>> read(std::span<char> buffer) override {
    const size_t count = std::min({buffer.size(), piece_, left_.size()});
    std::memcpy(buffer.data(), left_.data(), count);
    left_.remove_prefix(count);
    co_return count;
  }
  std::optional<uint64_t> length() const override { return std::nullopt; }

 private:
  std::string_view left_;
  size_t piece_;
};

// What was understood, framed again, must be what came.
Task<void> read_messages(std::string_view input, size_t piece) {
  PiecesBody body(input, piece);
  EnvelopeReader reader(body, /*message_limit=*/5000);
  std::string again;
  for (;;) {
    const auto message = co_await reader.next();
    if (!message) co_return;
    if (!*message) break;
    ALCOVE_ASSERT((*message)->size() <= 5000);
    append_envelope(again, **message);
    ALCOVE_ASSERT(input.starts_with(again));
  }
  ALCOVE_ASSERT(input == again);
}

}  // namespace
}  // namespace alcove::connect

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  boost::asio::io_context loop(1);
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  alcove::http::testing::run(loop, alcove::connect::read_messages(input, data[0] + 1));
  return 0;
}

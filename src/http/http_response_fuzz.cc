// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// A client fed with arbitrary bytes by its server. The first byte chooses the method.

#include <cstdint>

#include "base/assert.h"
#include "http/client_connection.h"
#include "http/testing/loop_runner.h"

namespace alcove::http {
namespace {

Task<void> read_answers(ClientConnection& connection, std::string method) {
  for (;;) {
    const RequestHead request{.method = method, .target = "/", .headers = {{"Host", "x"}}};
    if (!co_await connection.write_head(request, 0)) co_return;
    const auto head = co_await connection.read_head(method);
    if (!head) co_return;
    ALCOVE_ASSERT(head->status == 101 || (head->status >= 200 && head->status <= 999));
    for (const auto& [name, value] : head->headers) {
      ALCOVE_ASSERT(name.find_first_of("\r\n: ") == std::string::npos);
      ALCOVE_ASSERT(value.find_first_of("\r\n") == std::string::npos);
    }
    const auto body = co_await connection.body().read_all(100'000);
    if (!connection.reusable()) co_return;
    ALCOVE_ASSERT(body.has_value());
  }
}

}  // namespace
}  // namespace alcove::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::http;
  if (size == 0 || size > 20'000) return 0;
  const std::string_view input(reinterpret_cast<const char*>(data) + 1, size - 1);
  boost::asio::io_context loop(1);
  auto [client, peer] = testing::make_stream_pair(loop);
  (void)testing::run(loop, peer->write(input));
  peer->shutdown_write();
  ClientConnection connection(std::move(client), /*header_limit=*/4096);
  testing::run(loop, read_answers(connection, data[0] == 'H' ? "HEAD" : "GET"));
  return 0;
}

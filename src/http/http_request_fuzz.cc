// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// A server fed with arbitrary bytes: no crash, no hang, and handlers see clean requests only.

#include <cstdint>

#include "base/assert.h"
#include "base/log.h"
#include "http/testing/raw_client.h"
#include "http/wire_parser.h"

namespace alcove::http {
namespace {

void check_text(std::string_view text) {
  for (const char c : text) ALCOVE_ASSERT(c != '\r' && c != '\n' && c != '\0');
}

Task<void> handle(Exchange& exchange) {
  const RequestHead& request = exchange.request();
  check_text(request.method);
  check_text(request.target);
  ALCOVE_ASSERT(request.target.starts_with('/'));
  ALCOVE_ASSERT(request.headers.count("Host") <= 1);
  ALCOVE_ASSERT(request.version_minor == 0 || request.headers.has("Host"));
  ALCOVE_ASSERT(!request.headers.has("Transfer-Encoding") ||
                !request.headers.has("Content-Length"));
  for (const auto& [name, value] : request.headers) {
    check_text(name);
    check_text(value);
  }
  Response response;
  // Some bodies are read, some are left to the server to drain.
  if (request.target.size() % 2 == 0) {
    response.body = (co_await exchange.body().read_all(10'000)).value_or("");
  }
  (void)co_await exchange.respond(std::move(response));
}

// Whether the bytes come at once or one by one must not matter.
void check_steps(std::string_view input) {
  constexpr size_t kLimit = 1000;
  RequestHead head;
  HeadScan scan;
  const HeadParse at_once = parse_request_head(input, kLimit, scan, head);
  HeadScan steps_scan;
  for (size_t length = 0; length <= input.size(); ++length) {
    RequestHead steps_head;
    const HeadParse step =
        parse_request_head(input.substr(0, length), kLimit, steps_scan, steps_head);
    if (step.status == HeadParse::Status::kNeedMore) continue;
    ALCOVE_ASSERT(step.status == at_once.status && step.size == at_once.size);
    ALCOVE_ASSERT(step.status != HeadParse::Status::kDone || steps_head.target == head.target);
    return;
  }
  ALCOVE_ASSERT(at_once.status == HeadParse::Status::kNeedMore);
}

}  // namespace
}  // namespace alcove::http

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::http;
  if (size > 20'000) return 0;
  alcove::set_log_level(alcove::LogLevel::kError);
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  if (size < 2000) check_steps(input);
  testing::RawClient client(handle);
  const std::string answers = client.talk(input);
  ALCOVE_ASSERT(answers.empty() || answers.starts_with("HTTP/1.1 "));
  return 0;
}

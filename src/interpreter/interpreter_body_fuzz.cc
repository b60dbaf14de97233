// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Bodies of requests: read or refused, and what goes on to a runner survives its frame.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <boost/json/parse.hpp>

#include "base/assert.h"
#include "interpreter/requests.h"
#include "interpreter/runner_frames.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::interpreter;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  (void)parse_context_request(body);
  const auto request = parse_execute_request(body);
  if (!request) {
    // The refusal is itself JSON, whatever the body held.
    ALCOVE_ASSERT(boost::json::parse(request.error().message()).is_object());
    return 0;
  }
  for (const auto& [name, value] : request->env_vars) {
    ALCOVE_ASSERT(!name.empty() && name.find('=') == std::string::npos);
    ALCOVE_ASSERT((name + value).find('\0') == std::string::npos);
  }
  FrameParser parser;
  parser.append(execute_frame(1, {.code = request->code, .env_vars = request->env_vars}));
  const auto frame = parser.next();
  ALCOVE_ASSERT(frame && *frame);
  const boost::json::value read = boost::json::parse(**frame);
  ALCOVE_ASSERT(read.at("code").as_string() == request->code);
  return 0;
}

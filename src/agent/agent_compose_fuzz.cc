// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Bodies of /files/compose: what is understood has sources and a destination, all absolute and
// without NUL bytes once resolved, and the answer names the destination as it is.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/compose.h"
#include "base/assert.h"
#include "connect/json_codec.h"

namespace {

void check_path(std::string_view path) {
  ALCOVE_ASSERT(path.starts_with('/'));
  ALCOVE_ASSERT(path.find('\0') == std::string_view::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  auto request = agent::decode_compose(body);
  if (!request) return 0;
  ALCOVE_ASSERT(!request->sources.empty() && !request->destination.empty());
  ALCOVE_ASSERT(!request->username || !request->username->empty());
  if (!agent::resolve_paths(*request, {"/home/user", {}})) return 0;
  check_path(request->destination);
  for (const std::string& source : request->sources) check_path(source);
  const auto answer = connect::parse_message(agent::encode_composed(request->destination));
  ALCOVE_ASSERT(answer);
  ALCOVE_ASSERT(connect::read_string(*answer, "path") == request->destination);
  return 0;
}

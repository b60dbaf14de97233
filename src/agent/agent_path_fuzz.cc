// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Paths of requests: what is resolved has no NUL byte, and relative ones are clean and absolute.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/files_service.h"
#include "agent/paths.h"
#include "base/assert.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace alcove::agent;
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  const auto resolved = resolve_path(path, {"/home/user", {}});
  if (resolved) {
    ALCOVE_ASSERT(resolved->starts_with('/'));
    ALCOVE_ASSERT(resolved->find('\0') == std::string::npos);
    if (!path.starts_with('/')) {
      ALCOVE_ASSERT(clean_path(*resolved) == *resolved);
      ALCOVE_ASSERT(("/" + *resolved + "/").find("/../") == std::string::npos);
    }
  }
  const std::string parent = parent_path(path);
  ALCOVE_ASSERT(!parent.empty() && !base_name(path).empty());
  // Going up ends at the root or at the first component.
  ALCOVE_ASSERT(parent == "/" || parent.size() < path.size());
  return 0;
}

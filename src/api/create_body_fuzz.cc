// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// The body of a create comes from strangers with a key: no input may crash, and what is accepted
// keeps the promises that the node relies on.

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "api/create_body.h"
#include "base/strings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using alcove::api::Generation;
  const std::string_view body(reinterpret_cast<const char*>(data), size);
  for (const Generation generation : {Generation::kV1, Generation::kV2}) {
    const auto create = alcove::api::parse_create_body(body, generation, std::chrono::hours(24));
    if (!create) {
      if (create.error().status != 400 && create.error().status != 403) std::abort();
      (void)alcove::api::error_response(create.error());
      continue;
    }
    if (create->timeout < std::chrono::seconds(1) || create->timeout > std::chrono::hours(24)) {
      std::abort();
    }
    if (!create->public_traffic && !create->secure) std::abort();
    for (const auto& [name, value] : create->env_vars) {
      if (name.empty() || name.find('=') != std::string::npos ||
          name.find('\0') != std::string::npos || value.find('\0') != std::string::npos) {
        std::abort();
      }
    }
    for (const auto& [key, value] : create->metadata) {
      if (!alcove::is_valid_utf8(key) || !alcove::is_valid_utf8(value)) std::abort();
    }
  }
  return 0;
}

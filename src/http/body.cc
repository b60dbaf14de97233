// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/body.h"

#include <algorithm>

#include "base/strings.h"

namespace alcove::http {

Task<Result<std::string>> BodyReader::read_all(uint64_t limit) {
  constexpr uint64_t kFirstStep = 4096;
  constexpr uint64_t kLargestStep = 1024 * 1024;
  const auto too_long = [limit] {
    return fail(Code::kResourceExhausted, cat("the body is longer than ", limit, " bytes"));
  };
  if (length() && *length() > limit) co_return too_long();

  std::string all;
  size_t used = 0;
  for (;;) {
    if (used == all.size()) {
      // One byte more than the limit, to see whether the body goes on. An announced length is not
      // trusted with memory before the bytes are there.
      const uint64_t step = std::clamp<uint64_t>(used, kFirstStep, kLargestStep);
      all.resize(static_cast<size_t>(std::min<uint64_t>(limit + 1, used + step)));
    }
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await read(std::span(all).subspan(used)));
    if (count == 0) break;
    used += count;
    if (used > limit) co_return too_long();
  }
  all.resize(used);
  co_return all;
}

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/stream.h"

namespace alcove::net {

Task<Result<void>> Stream::write(std::string_view data) {
  const std::string_view pieces[] = {data};
  co_return co_await write(std::span<const std::string_view>(pieces));
}

}  // namespace alcove::net

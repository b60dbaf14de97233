// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/connection_io.h"

#include <algorithm>

namespace alcove::http {
namespace {

// With a write timeout, a long piece is written in slices, so that a slow client is not taken for
// a stuck one.
constexpr size_t kSlice = 256 * 1024;

}  // namespace

void ConnectionIo::begin_write() {
  if (options.write_timeout.count() == 0) return;
  stream->set_write_deadline(std::chrono::steady_clock::now() + options.write_timeout);
}

Task<Result<void>> ConnectionIo::write(std::span<const std::string_view> pieces) {
  begin_write();
  size_t total = 0;
  for (const std::string_view piece : pieces) total += piece.size();
  if (total <= kSlice || options.write_timeout.count() == 0) {
    co_return co_await stream->write(pieces);
  }
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const std::string_view slice[] = {piece.substr(0, kSlice)};
      ALCOVE_CO_TRY(co_await stream->write(std::span<const std::string_view>(slice)));
      piece.remove_prefix(slice[0].size());
      begin_write();
    }
  }
  co_return Result<void>();
}

}  // namespace alcove::http

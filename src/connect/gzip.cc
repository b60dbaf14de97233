// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>

#include "base/defer.h"
#include "base/strings.h"

namespace alcove::connect {

Result<std::string> gunzip(std::string_view packed, uint64_t limit) {
  // Window bits for gzip framing only (zlib.h, inflateInit2).
  constexpr int kGzipWindow = 15 + 16;
  z_stream stream{};
  if (inflateInit2(&stream, kGzipWindow) != Z_OK) {
    return fail(Code::kResourceExhausted, "no memory to unpack gzip");
  }
  const Defer end([&stream] { inflateEnd(&stream); });

  std::string out;
  std::array<char, 16 * 1024> piece;
  while (true) {
    const size_t fed = std::min<size_t>(packed.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream.avail_in = static_cast<uInt>(fed);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    const int status = inflate(&stream, Z_NO_FLUSH);
    const size_t used = fed - stream.avail_in;
    const size_t made = piece.size() - stream.avail_out;
    packed.remove_prefix(used);
    out.append(piece.data(), made);
    if (out.size() > limit) {
      return fail(Code::kResourceExhausted, cat("the body is longer than ", limit, " bytes"));
    }
    if (status == Z_STREAM_END) {
      if (packed.empty()) return out;
      inflateReset(&stream);
      continue;
    }
    if (status != Z_OK || (used == 0 && made == 0)) {
      return fail(Code::kInvalidArgument, "broken gzip data");
    }
  }
}

}  // namespace alcove::connect

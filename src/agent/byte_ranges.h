// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/headers.h"

namespace alcove::agent {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t count = 0;

  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

// What a Range header asks of a file with `size` bytes.
struct Selection {
  enum class Kind { kWhole, kParts, kUnsatisfiable };
  Kind kind = Kind::kWhole;
  // Of kParts: one or more, in the order they were asked for.
  std::vector<ByteRange> parts;
};

// Ranges outside of the file are left out. A header that is not understood gets the whole file, and
// so does one that asks for more bytes than the file has, or for more than kMostRanges parts: no
// answer is much longer than the file.
inline constexpr size_t kMostRanges = 64;
Selection select_ranges(const http::Headers& headers, uint64_t size, int64_t modified);

// "bytes 0-4/10"
std::string content_range(const ByteRange& range, uint64_t size);

// What stands around the bytes of a multipart/byteranges answer.
class RangeParts {
 public:
  // `content_type` and `size` are the file's; `boundary` occurs in no part.
  RangeParts(std::vector<ByteRange> ranges, uint64_t size, std::string_view content_type,
             std::string boundary);

  const std::vector<ByteRange>& ranges() const { return ranges_; }
  std::string content_type() const;
  // Of the whole body.
  uint64_t length() const;
  // What comes before the bytes of ranges()[index].
  const std::string& head(size_t index) const { return heads_[index]; }
  std::string end() const;

 private:
  std::vector<ByteRange> ranges_;
  std::string boundary_;
  std::vector<std::string> heads_;
};

}  // namespace alcove::agent

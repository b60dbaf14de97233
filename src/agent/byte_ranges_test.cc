// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/byte_ranges.h"

#include <gtest/gtest.h>

#include "agent/http_date.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

using Kind = Selection::Kind;
using Ranges = std::vector<ByteRange>;

Selection select(std::string range, uint64_t size = 10) {
  return select_ranges({{"Range", std::move(range)}}, size, 0);
}

TEST(SelectRanges, OneRange) {
  EXPECT_EQ(select("bytes=0-0").parts, (Ranges{{0, 1}}));
  EXPECT_EQ(select("bytes=3-").parts, (Ranges{{3, 7}}));
  EXPECT_EQ(select("bytes=3-99").parts, (Ranges{{3, 7}}));
  EXPECT_EQ(select("bytes=-4").parts, (Ranges{{6, 4}}));
  EXPECT_EQ(select("bytes=-40").parts, (Ranges{{0, 10}}));
  for (const char* outside : {"bytes=10-", "bytes=-0", "bytes=10-,-0,11-12"}) {
    EXPECT_EQ(select(outside).kind, Kind::kUnsatisfiable) << outside;
  }
}

TEST(SelectRanges, WhatIsNotUnderstoodGetsTheWholeFile) {
  EXPECT_EQ(select_ranges({}, 10, 0).kind, Kind::kWhole);
  for (const char* range :
       {"bytes=5-3", "bytes=a-b", "lines=0-1", "bytes=-", "bytes=", "bytes=,", "bytes=0-1,x",
        "bytes=0-1,5-3", "bytes=-1-2", "bytes=99999999999999999999-"}) {
    EXPECT_EQ(select(range).kind, Kind::kWhole) << range;
    EXPECT_TRUE(select(range).parts.empty()) << range;
  }
}

TEST(SelectRanges, AnEmptyFileIsAlwaysWhole) {
  for (const char* range : {"bytes=0-", "bytes=0-0", "bytes=-1", "bytes=5-9"}) {
    EXPECT_EQ(select(range, 0).kind, Selection::Kind::kWhole) << range;
  }
}

TEST(SelectRanges, SeveralInTheirOrder) {
  EXPECT_EQ(select("bytes=7-8, 0-1 ,,-1").parts, (Ranges{{7, 2}, {0, 2}, {9, 1}}));
  EXPECT_EQ(select("bytes=0-1,50-60").parts, (Ranges{{0, 2}}));
  EXPECT_EQ(select("bytes=0-4,0-4").parts, (Ranges{{0, 5}, {0, 5}}));
}

TEST(SelectRanges, AnAnswerIsNotMuchLongerThanTheFile) {
  EXPECT_EQ(select("bytes=0-,0-0").kind, Kind::kWhole);
  EXPECT_EQ(select("bytes=0-,0-,0-").kind, Kind::kWhole);
  std::string many = "bytes=0-0";
  for (size_t i = 1; i < kMostRanges; ++i) many += cat(",", i * 2, "-", i * 2);
  EXPECT_EQ(select(many, 1000).parts.size(), kMostRanges);
  EXPECT_EQ(select(many + ",999-999", 1000).kind, Kind::kWhole);
  // Also those that lie outside cost time.
  EXPECT_EQ(select(many + ",5000-", 1000).kind, Kind::kWhole);
}

TEST(SelectRanges, SizesNearTheEndOfTheNumbers) {
  constexpr uint64_t kMost = ~uint64_t{0};
  EXPECT_EQ(select(cat("bytes=0-", kMost)).parts, (Ranges{{0, 10}}));
  EXPECT_EQ(select(cat("bytes=-", kMost)).parts, (Ranges{{0, 10}}));
  EXPECT_EQ(select(cat("bytes=", kMost, "-", kMost)).kind, Kind::kUnsatisfiable);
}

TEST(SelectRanges, IfRangeNeedsTheExactDate) {
  const std::string date = format_http_date(1000);
  const auto kind = [&](const std::string& condition, int64_t modified) {
    return select_ranges({{"Range", "bytes=0-1"}, {"If-Range", condition}}, 10, modified).kind;
  };
  EXPECT_EQ(kind(date, 1000), Kind::kParts);
  EXPECT_EQ(kind(date, 1001), Kind::kWhole);
  EXPECT_EQ(kind("\"etag\"", 1000), Kind::kWhole);
}

TEST(RangeParts, LengthIsThatOfTheBody) {
  const std::string content = "0123456789";
  const RangeParts parts({{1, 2}, {7, 3}}, content.size(), "text/plain", "bb");
  EXPECT_EQ(parts.content_type(), "multipart/byteranges; boundary=bb");
  std::string body;
  for (size_t i = 0; i < parts.ranges().size(); ++i) {
    body += parts.head(i) + content.substr(parts.ranges()[i].offset, parts.ranges()[i].count);
  }
  body += parts.end();
  EXPECT_EQ(body,
            "--bb\r\nContent-Type: text/plain\r\nContent-Range: bytes 1-2/10\r\n\r\n12"
            "\r\n--bb\r\nContent-Type: text/plain\r\nContent-Range: bytes 7-9/10\r\n\r\n789"
            "\r\n--bb--\r\n");
  EXPECT_EQ(parts.length(), body.size());
}

}  // namespace
}  // namespace alcove::agent

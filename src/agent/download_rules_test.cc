// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/download_rules.h"

#include <gtest/gtest.h>

#include "agent/http_date.h"

namespace alcove::agent {
namespace {

Encoding encoding_for(std::string accept) {
  return choose_encoding({{"Accept-Encoding", std::move(accept)}});
}

TEST(ChooseEncoding, GzipOnlyForThoseWhoWantNothingElse) {
  EXPECT_EQ(choose_encoding({}), Encoding::kIdentity);
  EXPECT_EQ(encoding_for("gzip"), Encoding::kGzip);
  EXPECT_EQ(encoding_for("GZIP;q=0.5"), Encoding::kGzip);
  EXPECT_EQ(encoding_for("gzip, deflate"), Encoding::kIdentity);
  EXPECT_EQ(encoding_for("gzip;q=0"), Encoding::kIdentity);
  EXPECT_EQ(encoding_for("br"), Encoding::kIdentity);
  EXPECT_EQ(encoding_for("*"), Encoding::kIdentity);
}

TEST(ChooseEncoding, RejectedIdentity) {
  EXPECT_EQ(encoding_for("gzip, identity;q=0"), Encoding::kGzip);
  EXPECT_EQ(encoding_for("identity;q=0"), Encoding::kNotAcceptable);
  EXPECT_EQ(encoding_for("br, *;q=0"), Encoding::kNotAcceptable);
  EXPECT_EQ(encoding_for("gzip, *;q=0.0"), Encoding::kGzip);
  EXPECT_EQ(choose_encoding({{"Accept-Encoding", "gzip"}, {"Range", "bytes=0-1"}}),
            Encoding::kIdentity);
  EXPECT_EQ(choose_encoding({{"Accept-Encoding", "gzip, identity;q=0"}, {"Range", "bytes=0-1"}}),
            Encoding::kNotAcceptable);
}

TEST(Conditions, CompareDates) {
  const std::string date = format_http_date(1000);
  EXPECT_EQ(conditional_status({{"If-Modified-Since", date}}, 1000), 304);
  EXPECT_EQ(conditional_status({{"If-Modified-Since", date}}, 1001), 0);
  EXPECT_EQ(conditional_status({{"If-Modified-Since", date}, {"If-None-Match", "x"}}, 1000), 0);
  EXPECT_EQ(conditional_status({{"If-Unmodified-Since", date}}, 1001), 412);
  EXPECT_EQ(conditional_status({{"If-Unmodified-Since", date}}, 1000), 0);
  EXPECT_EQ(conditional_status({{"If-Modified-Since", "nonsense"}}, 0), 0);
}

TEST(Conditions, NoTagIsAFiles) {
  const std::string date = format_http_date(1000);
  EXPECT_EQ(conditional_status({{"If-Match", "\"x\""}}, 0), 412);
  EXPECT_EQ(conditional_status({{"If-Match", "*"}}, 0), 0);
  EXPECT_EQ(conditional_status({{"If-Match", " * "}, {"If-Unmodified-Since", date}}, 1001), 0);
  EXPECT_EQ(conditional_status({{"If-None-Match", "\"x\", W/\"y\""}}, 0), 0);
  EXPECT_EQ(conditional_status({{"If-None-Match", "*"}}, 0), 304);
}

TEST(HttpDate, RoundTrip) {
  EXPECT_EQ(format_http_date(784111777), "Sun, 06 Nov 1994 08:49:37 GMT");
  for (const int64_t time : {int64_t{0}, int64_t{784111777}, int64_t{4102444799}}) {
    EXPECT_EQ(parse_http_date(format_http_date(time)), time);
  }
  EXPECT_FALSE(parse_http_date("Sun, 31 Feb 1994 08:49:37 GMT"));
  EXPECT_FALSE(parse_http_date("Sun, 06 Nov 1994 08:49:37 CET"));
  EXPECT_FALSE(parse_http_date(""));
}

TEST(ContentType, ByExtension) {
  EXPECT_EQ(type_by_extension("a.PNG"), "image/png");
  EXPECT_EQ(type_by_extension("a.tar.gz"), "application/gzip");
  EXPECT_FALSE(type_by_extension("Makefile"));
}

}  // namespace
}  // namespace alcove::agent

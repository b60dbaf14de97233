// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>

#include <cerrno>

#include "base/defer.h"
#include "base/hex.h"
#include "base/ids.h"
#include "base/result.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/time_format.h"

namespace alcove {
namespace {

TEST(Error, FromErrnoKeepsNumberAndMapsTheCode) {
  const Error error = Error::from_errno(ENOENT, "open /x");
  EXPECT_EQ(error.code(), Code::kNotFound);
  EXPECT_EQ(error.error_number(), ENOENT);
  EXPECT_EQ(error.message(), "open /x: No such file or directory");
}

TEST(Error, ContextGoesInFront) {
  EXPECT_EQ(Error(Code::kInternal, "inner").context("outer").message(), "outer: inner");
}

Result<int> half(int n) {
  if (n % 2 != 0) return fail(Code::kInvalidArgument, "odd");
  return n / 2;
}
Result<int> quarter(int n) {
  ALCOVE_TRY_ASSIGN(const int h, half(n));
  ALCOVE_TRY(half(h));
  return half(h);
}

TEST(Result, TryPropagates) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message(), "odd");
}

TEST(Rollback, UndoesInReverseUnlessReleased) {
  std::string order;
  {
    Rollback rollback;
    rollback.add([&] { order += "a"; });
    rollback.add([&] { order += "b"; });
  }
  EXPECT_EQ(order, "ba");
  {
    Rollback rollback;
    rollback.add([&] { order += "c"; });
    rollback.release();
  }
  EXPECT_EQ(order, "ba");
}

TEST(Ids, HaveTheDocumentedShape) {
  const SandboxId id = make_sandbox_id();
  EXPECT_EQ(id.str().size(), 21u);
  EXPECT_EQ(id.str()[0], 'i');
  EXPECT_NE(id, make_sandbox_id());
  EXPECT_EQ(make_uuid().size(), 36u);
  EXPECT_EQ(make_uuid()[14], '4');
}

TEST(Ids, ParseAcceptsAClientSuffix) {
  EXPECT_EQ(parse_sandbox_id("iabc")->str(), "iabc");
  EXPECT_EQ(parse_sandbox_id("iabc-6532622b")->str(), "iabc");
  for (const char* bad : {"", "-", "a-", "-a", "a-b-c", "A", "a_b", "a/b", "a b"}) {
    const auto result = parse_sandbox_id(bad);
    ASSERT_FALSE(result) << bad;
    EXPECT_EQ(result.error().message(), "Invalid sandbox ID");
  }
}

// RFC 4231, test cases 2 and 6.
TEST(HmacSha256, KnownVectors) {
  const std::string_view pieces[] = {"what do ya want ", "for nothing?"};
  EXPECT_EQ(to_hex(hmac_sha256("Jefe", pieces)),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  const std::string_view large[] = {"Test Using Larger Than Block-Size Key - Hash Key First"};
  EXPECT_EQ(to_hex(hmac_sha256(std::string(131, '\xAA'), large)),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST(Sha256, KnownVector) {
  const char* kAbc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
  EXPECT_EQ(sha256_hex("abc"), kAbc);
  Sha256 pieces;
  pieces.update("a");
  pieces.update("bc");
  EXPECT_EQ(pieces.finish_hex(), kAbc);
}

TEST(Strings, Basics) {
  EXPECT_EQ(cat("a", 1, 'c', -2L), "a1c-2");
  EXPECT_EQ(split("a,,b", ',').size(), 3u);
  EXPECT_EQ(trim(" \t x \r\n"), "x");
  EXPECT_TRUE(equal_ignoring_case("X-Api-Key", "x-api-KEY"));
  EXPECT_EQ(parse_number<int>("12"), 12);
  EXPECT_FALSE(parse_number<int>("12x"));
  EXPECT_FALSE(parse_number<unsigned>("-1"));
  EXPECT_FALSE(parse_number<int>(""));
  EXPECT_FALSE(parse_number<uint16_t>("65536"));
}

TEST(Strings, Utf8) {
  EXPECT_TRUE(is_valid_utf8("häß €😀"));
  EXPECT_FALSE(is_valid_utf8("\xE2\x82"));
  EXPECT_FALSE(is_valid_utf8("\xC0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xED\xA0\x80"));
  EXPECT_FALSE(is_valid_utf8("\xFF"));
  EXPECT_EQ(to_valid_utf8("h\xC3\xA4\xFF!\xE2\x82"), "hä\xEF\xBF\xBD!\xEF\xBF\xBD\xEF\xBF\xBD");
}

TEST(TimeFormat, RoundTrip) {
  const auto time = parse_rfc3339("2026-11-16T18:16:51.000123Z");
  ASSERT_TRUE(time);
  EXPECT_EQ(format_rfc3339(*time), "2026-11-16T18:16:51.000123Z");
  EXPECT_EQ(parse_rfc3339("2026-11-16T20:16:51.000123+02:00"), time);
  EXPECT_EQ(parse_rfc3339("2026-11-16T18:16:51.000123999Z"), time);
  for (const char* bad : {"", "2026-11-16", "2026-13-16T00:00:00Z", "2026-11-16T18:16:51",
                          "2026-11-16T18:16:51.Z", "2026-02-30T00:00:00Z"}) {
    EXPECT_FALSE(parse_rfc3339(bad)) << bad;
  }
}

}  // namespace
}  // namespace alcove

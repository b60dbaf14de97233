// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/multipart.h"

#include <gtest/gtest.h>

#include <vector>

#include "agent/media_type.h"

namespace alcove::agent {
namespace {

struct Parsed {
  struct Part {
    std::string name;
    std::optional<std::string> file_name;
    std::string data;
    bool operator==(const Part&) const = default;
  };
  std::vector<Part> parts;
  bool complete = false;
  std::string error;
};

// Feeds the body in steps of `step` bytes.
Parsed parse(const std::string& body, size_t step, std::string_view boundary = "xx") {
  MultipartParser parser(boundary);
  Parsed parsed;
  size_t at = 0;
  for (;;) {
    const auto event = parser.next();
    if (!event) {
      parsed.error = event.error().message();
      return parsed;
    }
    switch (event->kind) {
      case MultipartParser::Kind::kNeedMore:
        if (at >= body.size()) {
          parser.feed_end();
        } else {
          parser.feed(std::string_view(body).substr(at, step));
          at += step;
        }
        break;
      case MultipartParser::Kind::kPart:
        parsed.parts.push_back({event->part.name, event->part.file_name, ""});
        break;
      case MultipartParser::Kind::kData:
        parsed.parts.back().data += event->data;
        break;
      case MultipartParser::Kind::kPartEnd:
        break;
      case MultipartParser::Kind::kEnd:
        parsed.complete = true;
        return parsed;
    }
  }
}

const std::string kForm =
    "preamble\r\n--xx\r\n"
    "Content-Disposition: form-data; name=\"file\"; filename=\"/a/b c.txt\"\r\n"
    "Content-Type: text/plain\r\n\r\n"
    "hello\r\n--x\r\nworld\r\n--xx\r\n"
    "content-disposition: form-data; name=other\r\n\r\n"
    "\r\n--xx  \r\n"
    "Content-Disposition: form-data; name=\"file\"; filename=\"\xc3\xa4%22.bin\"\r\n\r\n"
    "\r\n\r\n--xx--\r\nepilogue";

TEST(MultipartParser, GivesTheSamePartsForEverySplit) {
  for (size_t step = 1; step <= kForm.size(); ++step) {
    const Parsed parsed = parse(kForm, step);
    ASSERT_TRUE(parsed.complete) << "step " << step << ": " << parsed.error;
    ASSERT_EQ(parsed.parts.size(), 3u) << step;
    EXPECT_EQ(parsed.parts[0], (Parsed::Part{"file", "/a/b c.txt", "hello\r\n--x\r\nworld"}));
    EXPECT_EQ(parsed.parts[1], (Parsed::Part{"other", std::nullopt, ""}));
    EXPECT_EQ(parsed.parts[2], (Parsed::Part{"file", "\xc3\xa4%22.bin", "\r\n"}));
  }
}

TEST(MultipartParser, PartWithoutAnyDataMayEndAtItsHead) {
  const std::string body = "--xx\r\nA: b\r\n\r\n--xx--";
  for (size_t step = 1; step <= body.size(); ++step) {
    const Parsed parsed = parse(body, step);
    EXPECT_TRUE(parsed.complete);
    ASSERT_EQ(parsed.parts.size(), 1u);
    EXPECT_EQ(parsed.parts[0].data, "");
  }
}

TEST(MultipartParser, FormWithoutPartsIsComplete) { EXPECT_TRUE(parse("--xx--\r\n", 3).complete); }

TEST(MultipartParser, UnfinishedFormsAreErrors) {
  EXPECT_NE(parse("", 1).error, "");
  EXPECT_NE(parse("--xx", 1).error, "");
  EXPECT_NE(parse("--xx\r\nA: b\r\n\r\ndata", 1).error, "");
  EXPECT_NE(parse("--xxjunk\r\n\r\n", 4).error, "");
  EXPECT_NE(parse("--xx\r\nnocolon\r\n\r\n\r\n--xx--", 4).error, "");
}

TEST(MultipartParser, LongHeadsAreRefused) {
  EXPECT_NE(parse("--xx\r\nA: " + std::string(100'000, 'a') + "\r\n\r\n\r\n--xx--", 4096).error,
            "");
}

TEST(MediaType, ReadsParameters) {
  const auto type = parse_media_type("Multipart/Form-Data; Boundary=\"a;b\"; charset=utf-8;");
  ASSERT_TRUE(type);
  EXPECT_EQ(type->value, "multipart/form-data");
  EXPECT_EQ(type->parameters.at("boundary"), "a;b");
  EXPECT_EQ(type->parameters.at("charset"), "utf-8");
}

TEST(MediaType, KeepsWindowsPathsAndDecodesExtendedValues) {
  const auto windows = parse_media_type(R"(form-data; filename="C:\dir\x\"y.txt")");
  ASSERT_TRUE(windows);
  EXPECT_EQ(windows->parameters.at("filename"), "C:\\dir\\x\"y.txt");
  const auto extended = parse_media_type("form-data; filename*=UTF-8''%e2%82%ac; filename=euro");
  ASSERT_TRUE(extended);
  EXPECT_EQ(extended->parameters.at("filename"), "\xe2\x82\xac");
}

TEST(MediaType, RefusesBrokenSyntax) {
  EXPECT_FALSE(parse_media_type(""));
  EXPECT_FALSE(parse_media_type("a/b; x"));
  EXPECT_FALSE(parse_media_type("a/b; x=\"open"));
  EXPECT_FALSE(parse_media_type("a/b; x=1; x=2"));
}

TEST(InlineDisposition, QuotesOrEncodesTheName) {
  EXPECT_EQ(inline_disposition("a.txt"), "inline; filename=a.txt");
  EXPECT_EQ(inline_disposition("a b\".txt"), "inline; filename=\"a b\\\".txt\"");
  EXPECT_EQ(inline_disposition("\xc3\xa4.txt"), "inline; filename*=utf-8''%C3%A4.txt");
  EXPECT_EQ(inline_disposition("a\r\nSet-Cookie: x"),
            "inline; filename*=utf-8''a%0D%0ASet-Cookie%3A%20x");
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/chunk_decoder.h"
#include "http/headers.h"
#include "http/read_buffer.h"
#include "http/url.h"
#include "http/wire_parser.h"

namespace alcove::http {
namespace {

using ::testing::ElementsAre;
using ::testing::Optional;
using ::testing::Pair;

TEST(Headers, ComparesNamesWithoutCase) {
  Headers headers = {{"A", "1"}, {"b", "2"}, {"a", "3"}};
  EXPECT_EQ(headers.get("a"), "1");
  EXPECT_EQ(headers.get("c"), std::nullopt);
  EXPECT_EQ(headers.count("A"), 2u);
  headers.set("A", "4");
  EXPECT_EQ(headers.count("a"), 1u);
  EXPECT_EQ(headers.get("a"), "4");
  headers.set("new", "5");
  EXPECT_EQ(headers.get("New"), "5");
  headers.remove("B");
  EXPECT_FALSE(headers.has("b"));
  EXPECT_EQ(headers.size(), 2u);
}

TEST(Headers, FindsTokensOfLists) {
  const Headers headers = {{"Connection", "keep-alive, Upgrade"}, {"connection", "x"}};
  EXPECT_TRUE(headers.has_token("Connection", "upgrade"));
  EXPECT_TRUE(headers.has_token("connection", "X"));
  EXPECT_FALSE(headers.has_token("Connection", "keep"));
}

TEST(WireParser, ReadsARequestHead) {
  const std::string_view text = "POST /a%20b?c=d HTTP/1.1\r\nHost:  x \r\nX-Y:\r\n\r\nbody";
  HeadScan scan;
  RequestHead head;
  const HeadParse parse = parse_request_head(text, 1000, scan, head);
  ASSERT_EQ(parse.status, HeadParse::Status::kDone) << parse.problem;
  EXPECT_EQ(parse.size, text.size() - 4);
  EXPECT_EQ(head.method, "POST");
  EXPECT_EQ(head.path(), "/a%20b");
  EXPECT_EQ(head.query(), "c=d");
  EXPECT_EQ(head.version_minor, 1);
  EXPECT_THAT(std::vector(head.headers.begin(), head.headers.end()),
              ElementsAre(Pair("Host", "x"), Pair("X-Y", "")));
}

TEST(WireParser, NeedsTheWholeHead) {
  const std::string text = "\r\nGET / HTTP/1.0\r\nA: b\r\n\r\n";
  HeadScan scan;
  for (size_t length = 0; length < text.size(); ++length) {
    RequestHead head;
    EXPECT_EQ(parse_request_head(std::string_view(text).substr(0, length), 1000, scan, head).status,
              HeadParse::Status::kNeedMore);
  }
  RequestHead head;
  const HeadParse parse = parse_request_head(text, 1000, scan, head);
  EXPECT_EQ(parse.status, HeadParse::Status::kDone);
  EXPECT_EQ(parse.size, text.size());
  EXPECT_EQ(head.version_minor, 0);
}

TEST(WireParser, ReadsAResponseHead) {
  for (const std::string status_line : {"HTTP/1.0 404 Not here", "HTTP/1.0 404 ", "HTTP/1.0 404"}) {
    HeadScan scan;
    ParsedResponse response;
    const std::string text = status_line + "\r\nA: b\r\n c\r\n\r\n";
    const HeadParse parse = parse_response_head(text + "body", 1000, scan, response);
    ASSERT_EQ(parse.status, HeadParse::Status::kDone) << parse.problem;
    EXPECT_EQ(parse.size, text.size());
    EXPECT_EQ(response.head.status, 404);
    EXPECT_EQ(response.version_minor, 0);
    EXPECT_EQ(response.head.headers.get("A"), "b c");
  }
}

std::string decode_in_steps(std::string_view input, size_t in_step, size_t out_step, bool& valid) {
  ChunkDecoder decoder;
  std::string all;
  std::string room(out_step, '\0');
  while (!input.empty() && !decoder.done()) {
    const auto step = decoder.decode(input.substr(0, in_step), room);
    if (!step.valid) {
      valid = false;
      return all;
    }
    all.append(room, 0, step.produced);
    input.remove_prefix(step.consumed);
  }
  valid = decoder.done() && input == "rest";
  return all;
}

TEST(ChunkDecoder, DecodesInAnySteps) {
  const std::string_view text = "4\r\nabcd\r\n0A ;x=\"y\"\r\n0123456789\r\n0\r\nT: u\r\n\r\nrest";
  for (const size_t in_step : {1, 2, 3, 7, 100}) {
    for (const size_t out_step : {1, 3, 100}) {
      bool valid = false;
      EXPECT_EQ(decode_in_steps(text, in_step, out_step, valid), "abcd0123456789");
      EXPECT_TRUE(valid);
    }
  }
}

TEST(ChunkDecoder, LimitsExtensionsAndTrailers) {
  const std::string many(10'000, 'x');
  for (const std::string& text : {"1;" + many + "\r\na\r\n", "0\r\n" + many + "\r\n\r\n"}) {
    bool valid = true;
    decode_in_steps(text, 100, 100, valid);
    EXPECT_FALSE(valid);
  }
}

TEST(ReadBuffer, GrowsMovesAndReleases) {
  ReadBuffer buffer;
  std::string expected;
  for (int i = 0; i < 100; ++i) {
    const std::span<char> room = buffer.prepare();
    ASSERT_GE(room.size(), 1u);
    const size_t count = std::min<size_t>(room.size(), 777);
    std::fill_n(room.begin(), count, static_cast<char>('a' + i % 26));
    expected.append(count, static_cast<char>('a' + i % 26));
    buffer.commit(count);
    buffer.consume(500);
    expected.erase(0, 500);
    ASSERT_EQ(buffer.data(), expected);
  }
  EXPECT_EQ(buffer.take(), expected);
  EXPECT_TRUE(buffer.empty());
}

TEST(Url, Decodes) {
  EXPECT_THAT(percent_decode("a%2Fb+%c3%a4"), Optional(std::string("a/b+\xc3\xa4")));
  EXPECT_THAT(form_decode("a+b%2B"), Optional(std::string("a b+")));
  for (const std::string_view broken : {"%", "%1", "%zz", "a%2"}) {
    EXPECT_EQ(percent_decode(broken), std::nullopt) << broken;
  }
  EXPECT_EQ(percent_encode("a/b c~\xc3"), "a%2Fb%20c~%C3");
}

TEST(Url, ParsesQueries) {
  const auto parameters = parse_query("a=1&&b=x%26y&a=2&flag&=v");
  ASSERT_TRUE(parameters);
  EXPECT_THAT(*parameters, ElementsAre(Pair("a", "1"), Pair("b", "x&y"), Pair("a", "2"),
                                       Pair("flag", ""), Pair("", "v")));
  EXPECT_EQ(find_parameter(*parameters, "a"), "1");
  EXPECT_EQ(find_parameter(*parameters, "c"), std::nullopt);
  EXPECT_EQ(parse_query("a=%"), std::nullopt);
  EXPECT_TRUE(parse_query("")->empty());
}

TEST(Url, SplitsPaths) {
  EXPECT_THAT(path_segments("/a//b%2Fc/"), Optional(ElementsAre("a", "b/c")));
  EXPECT_THAT(path_segments("/"), Optional(ElementsAre()));
  EXPECT_EQ(path_segments("/%"), std::nullopt);
}

}  // namespace
}  // namespace alcove::http

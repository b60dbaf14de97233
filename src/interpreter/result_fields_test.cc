// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/result_fields.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "interpreter/utf8.h"

namespace alcove::interpreter {
namespace {

Display display(std::string_view bundle, Display::Kind kind = Display::Kind::kDisplayed) {
  return {boost::json::parse(bundle).as_object(), kind};
}

std::string line(RunEvent event) { return event_line(event, "2026-11-15T10:03:54.164979+00:00"); }

TEST(EventLine, IsWhatTheSheetShows) {
  EXPECT_EQ(line(RunStarted{2}), "{\"type\": \"number_of_executions\", \"execution_count\": 2}\n");
  EXPECT_EQ(line(StreamOutput{StreamOutput::Name::kStdout, "1\n"}),
            "{\"type\": \"stdout\", \"text\": \"1\\n\", \"timestamp\": "
            "\"2026-11-15T10:03:54.164979+00:00\"}\n");
  EXPECT_EQ(line(RunError{"ZeroDivisionError", "division by zero", "-----"}),
            "{\"type\": \"error\", \"name\": \"ZeroDivisionError\", \"value\": \"division by "
            "zero\", \"traceback\": \"-----\"}\n");
}

TEST(EventLine, IsPureAscii) {
  EXPECT_EQ(line(StreamOutput{StreamOutput::Name::kStderr, "é\u2028\u0085\x7f😀\x0b\xff"}),
            "{\"type\": \"stderr\", \"text\": "
            "\"\\u00e9\\u2028\\u0085\\u007f\\ud83d\\ude00\\u000b\\ufffd\", \"timestamp\": "
            "\"2026-11-15T10:03:54.164979+00:00\"}\n");
}

TEST(EventLine, MapsEveryMimeTypeToItsField) {
  EXPECT_EQ(
      line(display(R"({"e2b/chart":{},"image/png":"iVBO\n","text/plain":"<Figure>",
                       "application/json":[1,null,{"ü":2.5}],"x/y":{"a":["b"]}})",
                   Display::Kind::kValueOfLastExpression)),
      "{\"type\": \"result\", \"text\": \"<Figure>\", \"png\": \"iVBO\\n\", \"json\": [1, null, "
      "{\"\\u00fc\": 2.5E0}], \"chart\": {}, \"extra\": {\"x/y\": {\"a\": [\"b\"]}}, "
      "\"is_main_result\": true}\n");
  EXPECT_EQ(line(display("{}")),
            "{\"type\": \"result\", \"extra\": {}, \"is_main_result\": false}\n");
}

TEST(EventLine, TakesOnePairOfQuotesOffText) {
  const auto text = [](std::string_view quoted) {
    Display shown;
    shown.data["text/plain"] = quoted;
    const auto parsed = boost::json::parse(line(shown));
    return std::string(parsed.at("text").as_string());
  };
  EXPECT_EQ(text("'hello'"), "hello");
  EXPECT_EQ(text("\"it's\""), "it's");
  EXPECT_EQ(text("''x''"), "'x'");
  EXPECT_EQ(text("'a\""), "'a\"");
  EXPECT_EQ(text("'"), "'");
  EXPECT_EQ(text("''"), "");
  EXPECT_EQ(text("[1] 'x'"), "[1] 'x'");
}

TEST(Utf8Decoder, KeepsWhatAReadHasCut) {
  Utf8Decoder decoder;
  EXPECT_EQ(decoder.decode("a\xF0\x9F"), "a");
  EXPECT_EQ(decoder.decode("\x98"), "");
  EXPECT_EQ(decoder.decode("\x80z\xC3"), "😀z");
  EXPECT_EQ(decoder.finish(), "\uFFFD");
  EXPECT_EQ(decoder.finish(), "");
}

TEST(Utf8Decoder, ReplacesWhatIsNoUtf8) {
  EXPECT_EQ(Utf8Decoder().decode("\xC0\xAF|\xED\xA0\x80|\xF5|\xE2\x82|x"),
            "\uFFFD\uFFFD|\uFFFD\uFFFD\uFFFD|\uFFFD|\uFFFD|x");
  EXPECT_EQ(Utf8Decoder().decode(std::string_view("a\0b", 3)), std::string("a\0b", 3));
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/runner_frames.h"

#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

namespace alcove::interpreter {
namespace {

std::string frame(std::string_view body) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) {
    bytes += static_cast<char>(body.size() >> shift & 0xFF);
  }
  return bytes.append(body);
}

template <typename T>
T event_of(std::string_view json) {
  const RunnerMessage message = parse_runner_message(json);
  const auto* event = std::get_if<RunnerEvent>(&message);
  if (event == nullptr || !std::holds_alternative<T>(event->event)) {
    ADD_FAILURE() << json;
    return {};
  }
  EXPECT_EQ(event->id, 7);
  return std::get<T>(event->event);
}

TEST(FrameParser, FramesComeWholeHoweverTheyAreCut) {
  const std::string bytes = frame("one") + frame("") + frame(std::string(100'000, 'x'));
  for (const size_t piece : {size_t{1}, size_t{5}, bytes.size()}) {
    FrameParser parser;
    std::vector<std::string> frames;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      parser.append(std::string_view(bytes).substr(at, piece));
      for (;;) {
        const auto next = parser.next();
        ASSERT_TRUE(next);
        if (!*next) break;
        frames.push_back(**next);
      }
    }
    EXPECT_EQ(frames, (std::vector<std::string>{"one", "", std::string(100'000, 'x')}));
  }
}

TEST(FrameParser, AFrameThatIsTooLongIsRefusedBeforeItCame) {
  FrameParser parser;
  parser.append(std::string_view("\x10\x00\x00\x01", 4));
  EXPECT_FALSE(parser.next());
}

TEST(ExecuteFrame, HoldsCodeAndVariables) {
  const std::string bytes = execute_frame(9, {.code = "x\n\"\xC3\xA4", .env_vars = {{"A", "b'"}}});
  FrameParser parser;
  parser.append(bytes);
  const auto body = boost::json::parse(**parser.next()).as_object();
  EXPECT_EQ(body.at("type"), "execute");
  EXPECT_EQ(body.at("id"), 9);
  EXPECT_EQ(body.at("code"), "x\n\"\xC3\xA4");
  EXPECT_EQ(body.at("env"), (boost::json::object{{"A", "b'"}}));
  EXPECT_FALSE(body.contains("after_interrupt"));
}

TEST(ExecuteFrame, SaysThatAnInterruptMayBeOnItsWay) {
  FrameParser parser;
  parser.append(execute_frame(9, {.code = "x", .env_vars = {}}, Before::kInterrupt));
  const auto body = boost::json::parse(**parser.next()).as_object();
  EXPECT_EQ(body.at("after_interrupt"), true);
}

TEST(RunnerMessage, Kinds) {
  EXPECT_TRUE(std::holds_alternative<RunnerReady>(parse_runner_message(R"({"type":"ready"})")));
  const auto done = parse_runner_message(R"({"type":"done","id":7})");
  EXPECT_EQ(std::get<RunnerDone>(done).id, 7);
  EXPECT_EQ(
      event_of<RunStarted>(R"({"type":"started","id":7,"execution_count":3})").execution_count, 3);
  const auto output =
      event_of<StreamOutput>(R"({"type":"stream","id":7,"name":"stderr","text":"e"})");
  EXPECT_EQ(output.name, StreamOutput::Name::kStderr);
  EXPECT_EQ(output.text, "e");
  const auto shown =
      event_of<Display>(R"({"type":"result","id":7,"data":{"a/b":[1]},"main":true})");
  EXPECT_EQ(shown.kind, Display::Kind::kValueOfLastExpression);
  EXPECT_EQ(shown.data, (boost::json::object{{"a/b", {1}}}));
  EXPECT_EQ(event_of<Display>(R"({"type":"result","id":7,"data":{}})").kind,
            Display::Kind::kDisplayed);
  const auto error = event_of<RunError>(
      R"({"type":"error","id":7,"name":"N","value":"v","traceback":["a","b",1,"c"]})");
  EXPECT_EQ(error.name + error.value + error.traceback, "Nvabc");
  EXPECT_EQ(event_of<RunError>(R"({"type":"error","id":7,"traceback":"t"})").traceback, "t");
}

TEST(RunnerMessage, AnythingElseIsUnknown) {
  for (const std::string_view odd :
       {"", "x", "[]", "1", "{}", R"({"type":5})", R"({"type":"other"})",
        R"({"type":"result","id":7})", R"({"type":"result","id":7,"data":[]})",
        R"({"type":"stream","id":7,"text":""})", R"({"type":"stream","id":7,"text":5})"}) {
    EXPECT_TRUE(std::holds_alternative<RunnerUnknown>(parse_runner_message(odd))) << odd;
  }
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  EXPECT_TRUE(std::holds_alternative<RunnerUnknown>(parse_runner_message(deep)));
  EXPECT_EQ(event_of<RunError>("{\"type\":\"error\",\"id\":7,\"name\":\"\xFF\"}").name, "\xFF");
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/exec_messages.h"

#include <gtest/gtest.h>

namespace alcove::cli {
namespace {

TEST(ExecMessages, StartNamesTheCommand) {
  ExecOptions options;
  options.command = {"sh", "-c", "echo \"$X\""};
  EXPECT_EQ(start_message(options, Input::kNone),
            R"({"process":{"cmd":"sh","args":["-c","echo \"$X\""],"envs":{}},"stdin":false})");
  options.directory = "/tmp";
  options.env_vars = {{"X", "1"}};
  EXPECT_EQ(start_message(options, Input::kPipe),
            R"({"process":{"cmd":"sh","args":["-c","echo \"$X\""],"envs":{"X":"1"},"cwd":"/tmp"},)"
            R"("stdin":true})");
}

TEST(ExecMessages, TerminalsHaveASizeAndTheVariablesOfTheOfficialClients) {
  ExecOptions options;
  options.command = {"/bin/bash", "-i", "-l"};
  EXPECT_EQ(start_message(options, Input::kTerminal, {.columns = 100, .rows = 30}),
            R"({"process":{"cmd":"/bin/bash","args":["-i","-l"],"envs":{"TERM":"xterm-256color",)"
            R"("LANG":"C.UTF-8","LC_ALL":"C.UTF-8"}},"pty":{"size":{"cols":100,"rows":30}}})");
  options.env_vars = {{"TERM", "dumb"}};
  EXPECT_NE(start_message(options, Input::kTerminal)
                .find(R"("envs":{"TERM":"dumb","LANG":"C.UTF-8","LC_ALL":"C.UTF-8"})"),
            std::string::npos);
  EXPECT_EQ(resize_message(7, {.columns = 132, .rows = 50}),
            R"({"process":{"pid":7},"pty":{"size":{"cols":132,"rows":50}}})");
}

TEST(ExecMessages, InputIsBase64) {
  EXPECT_EQ(input_message(7, Input::kPipe, std::string_view("a\0\xff", 3)),
            R"({"process":{"pid":7},"input":{"stdin":"YQD/"}})");
  EXPECT_EQ(input_message(7, Input::kTerminal, "\x03"),
            R"({"process":{"pid":7},"input":{"pty":"Aw=="}})");
  EXPECT_EQ(selector_message(7), R"({"process":{"pid":7}})");
  EXPECT_EQ(signal_message(7, "SIGNAL_SIGTERM"),
            R"({"process":{"pid":7},"signal":"SIGNAL_SIGTERM"})");
}

TEST(ExecMessages, EventsAreRead) {
  const auto started = parse_event(R"({"event":{"start":{"pid":42}}})");
  ASSERT_TRUE(started);
  EXPECT_EQ(std::get<Started>(*started).pid, 42u);
  const auto output = parse_event(R"({"event":{"data":{"stderr":"aGk="}}})");
  ASSERT_TRUE(output);
  EXPECT_EQ(std::get<Output>(*output).stream, Output::Stream::kError);
  EXPECT_EQ(std::get<Output>(*output).data, "hi");
  const auto screen = parse_event(R"({"event":{"data":{"pty":"aGk="}}})");
  ASSERT_TRUE(screen);
  EXPECT_EQ(std::get<Output>(*screen).stream, Output::Stream::kOutput);
  EXPECT_EQ(std::get<Output>(*screen).data, "hi");
}

TEST(ExecMessages, EndsAreExitCodesAsAShellHasThem) {
  const auto end = [](const char* text) {
    return std::get<Ended>(*parse_event(std::string(R"({"event":{"end":)") + text + "}}"));
  };
  EXPECT_EQ(end(R"({"exited":true,"status":"exit status 0"})").exit_code, 0);
  EXPECT_EQ(end(R"({"exitCode":3,"exited":true,"status":"exit status 3"})").exit_code, 3);
  const Ended killed = end(R"({"exitCode":-1,"status":"signal: killed"})");
  EXPECT_TRUE(killed.by_signal);
  EXPECT_EQ(killed.exit_code, 137);
  constexpr const char* kDumped =
      R"x({"exitCode":-1,"status":"signal: segmentation fault (core dumped)"})x";
  EXPECT_EQ(end(kDumped).exit_code, 139);
  EXPECT_EQ(end(R"({"exitCode":-1,"status":"?"})").exit_code, 255);
}

TEST(ExecMessages, UnknownEventsAreNothingAndBrokenOnesErrors) {
  for (const char* text : {"{}", R"({"event":{}})", R"({"event":{"keepalive":{}}})",
                           R"({"event":{"data":{"new":"aGk="}}})", R"({"event":{"new":1}})"}) {
    const auto event = parse_event(text);
    ASSERT_TRUE(event) << text;
    EXPECT_TRUE(std::holds_alternative<Nothing>(*event)) << text;
  }
  for (const char* text : {"", "[]", R"({"event":7})", R"({"event":{"data":{"stdout":"%"}}})",
                           R"({"event":{"start":{"pid":"x"}}})"}) {
    EXPECT_FALSE(parse_event(text)) << text;
  }
}

}  // namespace
}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/run_stream.h"

#include <gtest/gtest.h>

#include <regex>

#include <boost/asio/io_context.hpp>

#include "net/event_loops.h"
#include "net/testing/loop_runner.h"

namespace alcove::interpreter {
namespace {

using net::testing::run;

RunEvent printed(std::string text) {
  return StreamOutput{.name = StreamOutput::Name::kStdout, .text = std::move(text)};
}

Task<void> emit_all(RunStream& stream, int count, std::string text, int& emitted) {
  for (; emitted < count; ++emitted) co_await stream.emit(printed(text));
  stream.close();
}

struct RunStreamTest : ::testing::Test {
  boost::asio::io_context loop;
  RunStream stream{loop.get_executor()};
};

TEST_F(RunStreamTest, LinesComeInOrderAndThenTheEnd) {
  EXPECT_FALSE(stream.used());
  run(loop, stream.emit(RunStarted{.execution_count = 3}));
  run(loop, stream.emit(printed("a")));
  stream.close();
  EXPECT_TRUE(stream.used());
  EXPECT_EQ(*run(loop, stream.next()),
            "{\"type\": \"number_of_executions\", \"execution_count\": 3}\n");
  const std::string line = *run(loop, stream.next());
  const std::regex shape(
      R"re(\{"type": "stdout", "text": "a", "timestamp": "\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"\}\n)re");
  EXPECT_TRUE(std::regex_match(line, shape)) << line;
  EXPECT_FALSE(run(loop, stream.next()));
}

TEST_F(RunStreamTest, ASlowClientHoldsTheKernelUp) {
  int emitted = 0;
  net::spawn(loop, emit_all(stream, 100, std::string(16 * 1024, 'x'), emitted));
  loop.poll();
  const int before = emitted;
  EXPECT_GT(before, 2);
  EXPECT_LT(before, 30);
  int lines = 0;
  while (run(loop, stream.next())) ++lines;
  EXPECT_EQ(lines, 100);
}

TEST_F(RunStreamTest, OnceTheClientLeftNothingIsKeptAndNobodyWaits) {
  int emitted = 0;
  net::spawn(loop, emit_all(stream, 1000, std::string(16 * 1024, 'x'), emitted));
  loop.poll();
  ASSERT_LT(emitted, 1000);
  stream.leave();
  loop.restart();
  loop.poll();
  EXPECT_EQ(emitted, 1000);
  EXPECT_TRUE(stream.left());
  EXPECT_FALSE(run(loop, stream.next()));
}

TEST_F(RunStreamTest, AHurriedRunWaitsForNobodyAndLosesNothing) {
  int emitted = 0;
  net::spawn(loop, emit_all(stream, 100, std::string(16 * 1024, 'x'), emitted));
  loop.poll();
  ASSERT_LT(emitted, 100);
  stream.hurry();
  loop.restart();
  loop.poll();
  EXPECT_EQ(emitted, 100);
  int lines = 0;
  while (run(loop, stream.next())) ++lines;
  EXPECT_EQ(lines, 100);
}

TEST_F(RunStreamTest, SilenceIsFilledWithKeepalives) {
  EXPECT_EQ(*run(loop, stream.next()), "{\"type\": \"keepalive\"}\n");
}

}  // namespace
}  // namespace alcove::interpreter

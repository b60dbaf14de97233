// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/run_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "image/line_tail.h"

namespace alcove::image {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(RunProgram, PassesLinesOfBothStreams) {
  std::vector<std::string> lines;
  ASSERT_TRUE(run_program({.argv = {"sh", "-c", "echo one; echo two >&2; printf three"},
                           .on_line = [&](std::string_view line) { lines.emplace_back(line); }}));
  EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
}

TEST(RunProgram, ShowsStatusAndEndOfOutputOnFailure) {
  const auto result = run_program({.argv = {"sh", "-c", "seq 1 100; echo the reason; exit 7"}});
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("exit status 7"));
  EXPECT_THAT(result.error().message(), HasSubstr("the reason"));
  EXPECT_THAT(result.error().message(), Not(HasSubstr("\n42\n")));
}

TEST(RunProgram, TellsThatAProgramIsNotInstalled) {
  const auto result = run_program({.argv = {"no-such-program-here"}});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().error_number(), ENOENT);
}

TEST(RunProgram, KillsTheWholeGroupAfterTheTimeout) {
  const auto result =
      run_program({.argv = {"sh", "-c", "sleep 100 & wait"}, .timeout = std::chrono::seconds(1)});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kDeadlineExceeded);
}

TEST(LineTail, CutsEndlessLinesAndKeepsTheLastOnes) {
  size_t lines = 0;
  LineTail tail([&](std::string_view line) {
    ++lines;
    EXPECT_LE(line.size(), LineTail::kMaxLine);
  });
  tail.append(std::string(3 * LineTail::kMaxLine, 'x'));
  EXPECT_EQ(lines, 3u);
  tail.append("a\r\nb\rc\n\nd");
  tail.finish();
  EXPECT_EQ(lines, 8u);
  EXPECT_THAT(tail.tail(), HasSubstr("\na\nb\nc\n\nd\n"));
}

TEST(RunProgram, IsKilledWhenItIsCanceled) {
  std::atomic<bool> canceled = false;
  const auto begin = std::chrono::steady_clock::now();
  const auto result = run_program({.argv = {"sh", "-c", "echo started; sleep 100 & wait"},
                                   .on_line = [&](std::string_view) { canceled = true; },
                                   .canceled = &canceled});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code(), Code::kCanceled);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

}  // namespace
}  // namespace alcove::image

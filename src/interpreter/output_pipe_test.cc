// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/output_pipe.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "base/unique_fd.h"

namespace alcove::interpreter {
namespace {

using Clock = std::chrono::steady_clock;

class OutputPipeTest : public ::testing::Test {
 protected:
  OutputPipeTest() {
    int ends[2];
    EXPECT_EQ(::pipe(ends), 0);
    writer_.reset(ends[1]);
    pipe_ = std::make_unique<OutputPipe>(StreamOutput::Name::kStdout,
                                         net::FdStream(loop_.get_executor(), UniqueFd(ends[0])));
  }
  void print(std::string_view text) {
    ASSERT_EQ(::write(writer_.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
    (void)pipe_->collect();
  }
  static std::string text_of(const std::optional<RunEvent>& event) {
    return event ? std::get<StreamOutput>(*event).text : "nothing";
  }

  boost::asio::io_context loop_;
  UniqueFd writer_;
  std::unique_ptr<OutputPipe> pipe_;
};

TEST_F(OutputPipeTest, PiecesOfALineWaitForItsEnd) {
  EXPECT_FALSE(pipe_->due());
  const auto before = Clock::now();
  print("a");
  const auto after = Clock::now();
  EXPECT_GE(*pipe_->due(), before + OutputPipe::kPiecesTime);
  EXPECT_LE(*pipe_->due(), after + OutputPipe::kPiecesTime);
  print(" b\n");
  // As if it had come in one piece.
  EXPECT_LE(*pipe_->due(), after + OutputPipe::kMergeTime);
  EXPECT_EQ(text_of(pipe_->take_due()), "a b\n");
  EXPECT_FALSE(pipe_->due());
}

TEST_F(OutputPipeTest, WholeLinesDoNotWaitForTheRest) {
  const auto before = Clock::now();
  print("one\ntwo\nthr");
  EXPECT_LE(*pipe_->due(), Clock::now() + OutputPipe::kMergeTime);
  EXPECT_EQ(text_of(pipe_->take_due()), "one\ntwo\n");
  EXPECT_GE(*pipe_->due(), before + OutputPipe::kPiecesTime);
  EXPECT_EQ(text_of(pipe_->take_due()), "thr") << "its end did not come in time";
  print("four\nfi");
  EXPECT_EQ(text_of(pipe_->take()), "four\nfi") << "at the end of a run, and before a frame";
}

TEST_F(OutputPipeTest, MuchTextWaitsForNothing) {
  for (size_t size = 0; size < OutputPipe::kMaxEvent; size += 4096) print(std::string(4096, 'x'));
  EXPECT_EQ(*pipe_->due(), OutputPipe::TimePoint::min());
  EXPECT_EQ(text_of(pipe_->take_due()).size(), OutputPipe::kMaxEvent);
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/context.h"

#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>

#include "interpreter/testing/fake_kernel.h"
#include "net/event_loops.h"
#include "net/testing/loop_runner.h"

namespace alcove::interpreter {
namespace {

using net::testing::run;
using net::testing::run_until;
using testing::FakeKernels;

class ContextTest : public ::testing::Test {
 protected:
  using StreamPtr = std::shared_ptr<RunStream>;

  StreamPtr begin(std::string code) {
    auto stream = std::make_shared<RunStream>(loop_.get_executor());
    context_->run({.code = std::move(code), .env_vars = {}}, stream);
    return stream;
  }
  // All lines up to the end.
  std::string read(const StreamPtr& stream) {
    std::string all;
    while (auto line = run(loop_, stream->next())) all += *line;
    return all;
  }
  std::string execute(std::string code) { return read(begin(std::move(code))); }
  // Until the kernel works on this code.
  void wait_for(std::string_view code) {
    run_until(loop_, [&] { return kernels_.running() == code; });
  }

  // For that long nothing happens but what was begun.
  void pass(std::chrono::milliseconds time) {
    loop_.restart();
    loop_.run_for(time);
  }

  static constexpr std::string_view kLoss = "its variables are gone";
  static constexpr Context::Patience kPatience{.second = std::chrono::milliseconds(20),
                                               .third = std::chrono::milliseconds(40),
                                               .for_others = std::chrono::milliseconds(100),
                                               .alone = std::chrono::milliseconds(1000),
                                               .last = std::chrono::milliseconds(50)};
  boost::asio::io_context loop_;
  FakeKernels kernels_{loop_.get_executor()};
  std::shared_ptr<Context> context_ = std::make_shared<Context>(
      loop_.get_executor(), Context::Info{.id = "id", .language = "fake", .cwd = "/"},
      [this] { return kernels_.make(); }, kPatience);
};

TEST_F(ContextTest, StartsItsKernelOnceAndBeforeTheFirstRun) {
  EXPECT_EQ(kernels_.made(), 0);
  EXPECT_NE(execute("print a").find("\"a\""), std::string::npos);
  EXPECT_NE(execute("print b").find("\"b\""), std::string::npos);
  EXPECT_EQ(kernels_.made(), 1);
}

TEST_F(ContextTest, RunsQueueInTheOrderOfTheirArrival) {
  const StreamPtr first = begin("wait 1");
  const StreamPtr second = begin("print 2");
  const StreamPtr third = begin("print 3");
  wait_for("wait 1");
  EXPECT_FALSE(second->used());
  kernels_.finish();
  (void)read(first);
  (void)read(third);
  EXPECT_EQ(kernels_.log(), "wait 1, print 2, print 3");
}

TEST_F(ContextTest, ACancelledRunIsInterruptedAndTheNextOneServed) {
  const StreamPtr first = begin("wait");
  wait_for("wait");
  context_->cancel(first);
  EXPECT_NE(execute("print on").find("\"on\""), std::string::npos);
  EXPECT_EQ(kernels_.interrupts(), 1);
  EXPECT_EQ(kernels_.made(), 1);
  EXPECT_TRUE(first->left());
}

TEST_F(ContextTest, ACancelledRunThatHasNotBegunNeverBegins) {
  const StreamPtr first = begin("wait");
  const StreamPtr second = begin("print never");
  wait_for("wait");
  context_->cancel(second);
  kernels_.finish();
  (void)read(first);
  (void)execute("print last");
  EXPECT_EQ(kernels_.log(), "wait, print last");
  EXPECT_EQ(kernels_.interrupts(), 0);
}

TEST_F(ContextTest, AKernelThatDoesNotListenIsReplacedForTheNextRun) {
  const StreamPtr first = begin("deaf");
  wait_for("deaf");
  context_->cancel(first);
  const std::string lines = execute("print on");
  EXPECT_NE(lines.find("\"on\""), std::string::npos);
  EXPECT_EQ(kernels_.interrupts(), 4) << "it was asked more than once";
  EXPECT_EQ(kernels_.made(), 2);
  EXPECT_LT(lines.find("number_of_executions"), lines.find(kLoss));
  EXPECT_LT(lines.find(kLoss), lines.find("\"on\""));
  EXPECT_EQ(execute("print more").find(kLoss), std::string::npos) << "once is enough";
}

TEST_F(ContextTest, AKernelThatDoesNotListenKeepsItsStateWhileNobodyWaits) {
  const StreamPtr deaf = begin("deaf");
  wait_for("deaf");
  context_->cancel(deaf);
  const StreamPtr gone = begin("print gone");
  context_->cancel(gone);
  pass(5 * kPatience.for_others);
  EXPECT_EQ(kernels_.running(), "deaf") << "a run whose client has left waits for nothing";
  EXPECT_EQ(kernels_.alive(), 1);
  EXPECT_NE(execute("print on").find(kLoss), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AKernelThatNeverListensEndsInTheEnd) {
  const StreamPtr first = begin("deaf");
  wait_for("deaf");
  context_->cancel(first);
  run_until(loop_, [&] { return kernels_.made() == 2; });
  EXPECT_NE(execute("print on").find(kLoss), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AnInterruptThatArrivedIsNotRepeatedUntilTheEnd) {
  const StreamPtr first = begin("stubborn");
  wait_for("stubborn");
  context_->cancel(first);
  pass(3 * kPatience.third);
  EXPECT_EQ(kernels_.interrupts(), 1) << "a second one would hit what cleans up";
  EXPECT_NE(execute("print on").find(kLoss), std::string::npos);
  EXPECT_EQ(kernels_.interrupts(), 2);
}

TEST_F(ContextTest, TheLastInterruptMaySaveTheState) {
  const StreamPtr first = begin("twice");
  wait_for("twice");
  context_->cancel(first);
  EXPECT_EQ(execute("print on").find(kLoss), std::string::npos);
  EXPECT_EQ(kernels_.made(), 1);
}

TEST_F(ContextTest, ARestartThatWasAskedForIsNotTold) {
  const StreamPtr first = begin("deaf");
  wait_for("deaf");
  context_->cancel(first);
  EXPECT_TRUE(run(loop_, context_->restart()));
  EXPECT_EQ(execute("print on").find(kLoss), std::string::npos);
}

TEST_F(ContextTest, AForkBombIsNotWaitedFor) {
  const StreamPtr first = begin("deaf");
  wait_for("deaf");
  kernels_.run_away();
  context_->cancel(first);
  EXPECT_NE(execute("print on").find("\"on\""), std::string::npos);
  EXPECT_EQ(kernels_.interrupts(), 0);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AForkBombThatAnInterruptedRunLeftEndsWithItsKernel) {
  const StreamPtr first = begin("wait");
  wait_for("wait");
  context_->cancel(first);
  kernels_.run_away();
  EXPECT_NE(execute("print on").find("\"on\""), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AKernelThatDiesInARunIsToldAndReplaced) {
  (void)execute("print a");
  const std::string lines = execute("die");
  EXPECT_NE(lines.find("\"ContextRestarting\""), std::string::npos) << lines;
  EXPECT_NE(lines.find("\"Context was restarted\""), std::string::npos) << lines;
  const std::string next = execute("print b");
  EXPECT_NE(next.find("\"b\""), std::string::npos);
  EXPECT_EQ(next.find(kLoss), std::string::npos) << "the last run was told";
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AKernelThatDiedIdleCostsNobodyARun) {
  (void)execute("print a");
  kernels_.kill_idle();
  const std::string lines = execute("print b");
  EXPECT_NE(lines.find("\"b\""), std::string::npos);
  EXPECT_NE(lines.find(kLoss), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, AKernelThatDiesAtOnceIsNotTriedForEver) {
  const std::string lines = execute("die unheard");
  EXPECT_NE(lines.find("\"ContextRestarting\""), std::string::npos) << lines;
}

TEST_F(ContextTest, AKernelThatCannotStartIsAnError) {
  kernels_.fail_starts("no such luck");
  EXPECT_FALSE(run(loop_, context_->warm_up()));
  const std::string lines = execute("print a");
  EXPECT_NE(lines.find("\"KernelError\""), std::string::npos) << lines;
  EXPECT_NE(lines.find("no such luck"), std::string::npos) << lines;
  loop_.restart();
  loop_.poll();
  EXPECT_EQ(kernels_.made(), 2) << "once for each who asked";
}

TEST_F(ContextTest, RestartEndsTheRunAndComesBeforeTheQueue) {
  const StreamPtr first = begin("wait");
  const StreamPtr second = begin("print 2");
  wait_for("wait");
  EXPECT_TRUE(run(loop_, context_->restart()));
  EXPECT_NE(read(first).find("\"ContextRestarting\""), std::string::npos);
  EXPECT_NE(read(second).find("\"2\""), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, RestartDoesNotWaitForAClientThatStoppedReading) {
  const StreamPtr first = begin("flood");
  wait_for("flood");
  EXPECT_TRUE(run(loop_, context_->restart()));
  EXPECT_NE(execute("print on").find("\"on\""), std::string::npos);
  EXPECT_NE(read(first).find("\"ContextRestarting\""), std::string::npos) << "nothing was dropped";
}

TEST_F(ContextTest, RemovalDoesNotWaitForAClientThatStoppedReading) {
  const StreamPtr first = begin("flood");
  wait_for("flood");
  run(loop_, context_->remove());
  EXPECT_EQ(kernels_.alive(), 0);
  EXPECT_NE(read(first).find("\"UnexpectedEndOfExecution\""), std::string::npos);
}

TEST_F(ContextTest, RemovalDoesNotWaitForAKernelThatDoesNotGetReady) {
  kernels_.hold_starts(true);
  const StreamPtr first = begin("print 1");
  run_until(loop_, [&] { return kernels_.alive() == 1; });
  run(loop_, context_->remove());
  EXPECT_EQ(kernels_.alive(), 0);
  EXPECT_EQ(kernels_.made(), 1);
  EXPECT_NE(read(first).find("\"UnexpectedEndOfExecution\""), std::string::npos);
}

TEST_F(ContextTest, RestartEndsAKernelThatDoesNotGetReady) {
  kernels_.hold_starts(true);
  const StreamPtr first = begin("wait");
  const StreamPtr second = begin("print 2");
  run_until(loop_, [&] { return kernels_.alive() == 1; });
  kernels_.hold_starts(false);
  EXPECT_TRUE(run(loop_, context_->restart())) << "nor does it wait for the run";
  EXPECT_NE(read(first).find("\"ContextRestarting\""), std::string::npos);
  EXPECT_NE(read(second).find("\"2\""), std::string::npos);
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, WhoWaitsForAKernelGetsTheOneOfTheRestart) {
  kernels_.hold_starts(true);
  bool ready = false;
  net::spawn(loop_, [](Context& context, bool& done) -> Task<void> {
    done = (co_await context.warm_up()).has_value();
  }(*context_, ready));
  run_until(loop_, [&] { return kernels_.alive() == 1; });
  kernels_.hold_starts(false);
  EXPECT_TRUE(run(loop_, context_->restart()));
  run_until(loop_, [&] { return ready; });
  EXPECT_EQ(kernels_.made(), 2);
}

TEST_F(ContextTest, ARunThatHasSaidNothingIsNotTriedAgainBehindARestart) {
  (void)execute("print a");
  const StreamPtr first = begin("mute");
  wait_for("mute");
  EXPECT_TRUE(run(loop_, context_->restart()));
  EXPECT_NE(read(first).find("\"ContextRestarting\""), std::string::npos);
  EXPECT_EQ(kernels_.log(), "print a, mute");
}

TEST_F(ContextTest, RestartOfAnIdleContextHasAFreshKernelReady) {
  (void)execute("print a");
  EXPECT_TRUE(run(loop_, context_->restart()));
  EXPECT_EQ(kernels_.made(), 2);
  kernels_.fail_starts("too late");
  EXPECT_FALSE(run(loop_, context_->restart()));
}

TEST_F(ContextTest, RemovalTellsThoseWhoRunAndThoseWhoWait) {
  const StreamPtr first = begin("wait");
  const StreamPtr second = begin("print 2");
  wait_for("wait");
  run(loop_, context_->remove());
  EXPECT_NE(read(first).find("\"UnexpectedEndOfExecution\""), std::string::npos);
  EXPECT_NE(read(second).find("\"UnexpectedEndOfExecution\""), std::string::npos);
  EXPECT_EQ(kernels_.made(), 1);
  EXPECT_EQ(kernels_.alive(), 0);
}

}  // namespace
}  // namespace alcove::interpreter

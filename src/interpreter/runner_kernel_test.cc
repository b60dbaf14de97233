// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/runner_kernel.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/strings.h"
#include "net/event_loops.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::interpreter {
namespace {

using net::testing::run;
using std::chrono::milliseconds;

// The smallest runner: cells are Python, and nothing waits for anything.
constexpr const char* kRunner = R"py(
import json, socket, struct, subprocess, time
channel = socket.socket(fileno=3)
def send(**frame):
    body = json.dumps(frame).encode()
    channel.sendall(struct.pack('>I', len(body)) + body)
send(type='ready')
while head := channel.recv(4, socket.MSG_WAITALL):
    frame = json.loads(channel.recv(struct.unpack('>I', head)[0], socket.MSG_WAITALL))
    send(type='started', id=frame['id'], execution_count=1)
    exec(frame['code'])
    send(type='done', id=frame['id'])
)py";

// Takes its time before it begins, and counts interrupts.
constexpr const char* kCountingRunner = R"py(
import json, signal, socket, struct, time
hits = []
signal.signal(signal.SIGINT, lambda *_: hits.append(1))
channel = socket.socket(fileno=3)
def send(**frame):
    body = json.dumps(frame).encode()
    channel.sendall(struct.pack('>I', len(body)) + body)
send(type='ready')
while head := channel.recv(4, socket.MSG_WAITALL):
    frame = json.loads(channel.recv(struct.unpack('>I', head)[0], socket.MSG_WAITALL))
    time.sleep(0.3)
    early = len(hits)
    send(type='started', id=frame['id'], execution_count=1)
    time.sleep(0.3)
    print(early, len(hits), frame.get('after_interrupt'), flush=True)
    send(type='done', id=frame['id'])
)py";

// Like the stream of a client that left: it never waits.
class Counter final : public EventSink {
 public:
  Task<void> emit(RunEvent event) override {
    if (const auto* output = std::get_if<StreamOutput>(&event)) {
      bytes += output->text.size();
      last = output->text;
    }
    co_return;
  }
  size_t bytes = 0;
  std::string last;
};

// Like a client that reads slowly: its first result takes until nothing more fits.
class SlowSink final : public EventSink {
 public:
  Task<void> emit(RunEvent event) override {
    if (!std::holds_alternative<Display>(event)) co_return;
    if (results++ == 0) {
      co_await net::sleep_for(milliseconds(500));
      sent_meanwhile = std::filesystem::file_size(kSentFile);
    }
  }
  static constexpr const char* kSentFile = "/tmp/alcove-test-runner-kernel-sent";
  int results = 0;
  size_t sent_meanwhile = 0;
};

class RunnerKernelTest : public ::testing::Test {
 protected:
  void SetUp() override {
    // The reaper hears of ended children by a signal that nobody else takes.
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    reaper_ = *agent::ChildReaper::create(loop_.get_executor());
    net::spawn(loop_, reaper_->run());
  }
  void make(const std::string& program) {
    KernelSetup setup{.directory = "/tmp", .environment = {"PATH=/usr/local/bin:/usr/bin:/bin"}};
    kernel_ = std::make_unique<RunnerKernel>(
        loop_.get_executor(), *reaper_,
        std::vector<std::string>{"/usr/bin/env", "python3", "-c", program}, std::move(setup));
  }
  void start() {
    make(kRunner);
    const auto started = run(loop_, kernel_->start());
    ASSERT_TRUE(started) << started.error().message();
  }
  void TearDown() override { run(loop_, kernel_->end()); }

  boost::asio::io_context loop_;
  std::unique_ptr<agent::ChildReaper> reaper_;
  std::unique_ptr<RunnerKernel> kernel_;
  Counter sink_;
};

TEST_F(RunnerKernelTest, WhoPrintsForEverInTheBackgroundHoldsNoRunUp) {
  start();
  const Execution begin{.code = "subprocess.Popen(['yes']); time.sleep(0.2)", .env_vars = {}};
  EXPECT_EQ(run(loop_, kernel_->execute(begin, sink_)), RunOutcome::kDone);
  EXPECT_GT(sink_.bytes, 0u);
  const Execution next{.code = "time.sleep(0.2)", .env_vars = {}};
  EXPECT_EQ(run(loop_, kernel_->execute(next, sink_)), RunOutcome::kDone);
}

TEST_F(RunnerKernelTest, LargeResultsOfASlowClientWaitInTheRunner) {
  start();
  // Three of them fit, and each is larger than the socket.
  const Execution results{.code = cat("with open('", SlowSink::kSentFile, "', 'wb', 0) as sent:\n",
                                      "  for _ in range(16):\n"
                                      "    sent.write(b'.')\n"
                                      "    send(type='result', id=frame['id'], main=False,\n"
                                      "         data={'text/plain': 'x' * (5 << 19)})\n"),
                          .env_vars = {}};
  SlowSink slow;
  EXPECT_EQ(run(loop_, kernel_->execute(results, slow)), RunOutcome::kDone);
  EXPECT_EQ(slow.results, 16);
  EXPECT_LT(slow.sent_meanwhile, 8u) << "without a limit of bytes it is all of them";
  std::filesystem::remove(SlowSink::kSentFile);
}

TEST_F(RunnerKernelTest, AResultThatIsLargerThanTheLimitArrives) {
  start();
  const Execution result{.code =
                             "send(type='result', id=frame['id'], main=True, "
                             "data={'text/plain': 'x' * (20 << 20)})",
                         .env_vars = {}};
  SlowSink slow;
  std::ofstream(SlowSink::kSentFile).close();
  EXPECT_EQ(run(loop_, kernel_->execute(result, slow)), RunOutcome::kDone);
  EXPECT_EQ(slow.results, 1);
  std::filesystem::remove(SlowSink::kSentFile);
}

TEST_F(RunnerKernelTest, WhoPrintsForEverEndsWithItsKernel) {
  start();
  bool ended = false;
  net::spawn(loop_, [](RunnerKernel& kernel, bool& done) -> Task<void> {
    co_await net::sleep_for(milliseconds(200));
    co_await kernel.end();
    done = true;
  }(*kernel_, ended));
  // In a session of its own it outlives the kernel, and goes on printing.
  const Execution endless{.code =
                              "subprocess.Popen(['timeout', '20', 'yes'], "
                              "start_new_session=True); time.sleep(300)",
                          .env_vars = {}};
  EXPECT_EQ(run(loop_, kernel_->execute(endless, sink_)), RunOutcome::kDied);
  net::testing::run_until(loop_, [&] { return ended; });
}

TEST_F(RunnerKernelTest, AnInterruptWaitsForTheCodeAndTheNextRunIsToldOfIt) {
  make(kCountingRunner);
  ASSERT_TRUE(run(loop_, kernel_->start()));
  net::spawn(loop_, [](RunnerKernel& kernel) -> Task<void> {
    co_await net::sleep_for(milliseconds(10));
    kernel.interrupt();
    EXPECT_FALSE(kernel.interrupt_arrived());
  }(*kernel_));
  const Execution execution{.code = "", .env_vars = {}};
  EXPECT_EQ(run(loop_, kernel_->execute(execution, sink_)), RunOutcome::kDone);
  EXPECT_EQ(sink_.last, "0 1 None\n");
  EXPECT_TRUE(kernel_->interrupt_arrived());
  EXPECT_EQ(run(loop_, kernel_->execute(execution, sink_)), RunOutcome::kDone);
  EXPECT_EQ(sink_.last, "1 1 True\n");
  EXPECT_EQ(run(loop_, kernel_->execute(execution, sink_)), RunOutcome::kDone);
  EXPECT_EQ(sink_.last, "1 1 None\n");
}

TEST_F(RunnerKernelTest, TheEndOfAKernelEndsItsStart) {
  make("import time; time.sleep(300)");
  net::spawn(loop_, [](RunnerKernel& kernel) -> Task<void> {
    co_await net::sleep_for(milliseconds(50));
    co_await kernel.end();
  }(*kernel_));
  const auto begun = std::chrono::steady_clock::now();
  EXPECT_FALSE(run(loop_, kernel_->start()));
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::seconds(30));
}

}  // namespace
}  // namespace alcove::interpreter

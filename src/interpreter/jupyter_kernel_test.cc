// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// The real R kernel (Debian's r-cran-irkernel).
#include "interpreter/jupyter_kernel.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <boost/asio/io_context.hpp>

#include "base/strings.h"
#include "net/event_loops.h"
#include "net/testing/loop_runner.h"
#include "net/timer.h"

namespace alcove::interpreter {
namespace {

using net::testing::run;

class Recorder final : public EventSink {
 public:
  Task<void> emit(RunEvent event) override {
    events.push_back(std::move(event));
    co_return;
  }
  template <typename T>
  std::vector<T> all() const {
    std::vector<T> found;
    for (const RunEvent& event : events) {
      if (const T* one = std::get_if<T>(&event)) found.push_back(*one);
    }
    return found;
  }
  std::string printed(StreamOutput::Name name = StreamOutput::Name::kStdout) const {
    std::string text;
    for (const StreamOutput& output : all<StreamOutput>()) {
      if (output.name == name) text += output.text;
    }
    return text;
  }
  std::vector<RunEvent> events;
};

class JupyterR : public ::testing::Test {
 protected:
  void SetUp() override {
    // The reaper hears of ended children by a signal that nobody else takes.
    sigset_t mask;
    ::sigemptyset(&mask);
    ::sigaddset(&mask, SIGCHLD);
    ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
    reaper_ = *agent::ChildReaper::create(loop_.get_executor());
    net::spawn(loop_, reaper_->run());
    kernel_ = make();
    const auto started = run(loop_, kernel_->start());
    ASSERT_TRUE(started) << started.error().message();
  }
  void TearDown() override {
    run(loop_, kernel_->end());
    kernel_.reset();
    EXPECT_TRUE(std::filesystem::is_empty(dir_)) << "nothing is left of the connection";
    std::filesystem::remove_all(dir_);
  }
  std::unique_ptr<Kernel> make() {
    KernelSetup setup{.directory = "/tmp",
                      .environment = {"PATH=/usr/bin:/bin", "HOME=/root", "LANG=C.UTF-8"}};
    return *make_jupyter_kernel(loop_.get_executor(), *reaper_, "r", std::move(setup),
                                {.runtime_dir = dir_});
  }
  Recorder execute(std::string code, std::map<std::string, std::string> variables = {}) {
    Recorder recorder;
    outcome_ = run(loop_, kernel_->execute({std::move(code), std::move(variables)}, recorder));
    return recorder;
  }

  const std::string dir_ = cat("/tmp/alcove-test-jupyter-", ::getpid());
  boost::asio::io_context loop_;
  std::unique_ptr<agent::ChildReaper> reaper_;
  std::unique_ptr<Kernel> kernel_;
  RunOutcome outcome_ = RunOutcome::kDone;
};

TEST_F(JupyterR, PrintsCountsAndKeepsState) {
  const Recorder first = execute("x <- 41; print(\"Hello, World!\")");
  ASSERT_FALSE(first.events.empty());
  ASSERT_TRUE(std::holds_alternative<RunStarted>(first.events.front()));
  EXPECT_EQ(std::get<RunStarted>(first.events.front()).execution_count, 1);
  EXPECT_EQ(first.printed(), "[1] \"Hello, World!\"\n");
  EXPECT_EQ(execute("  \n").all<RunStarted>().at(0).execution_count, 2);
  const Recorder second = execute("x + 1");
  EXPECT_EQ(second.all<RunStarted>().at(0).execution_count, 2);
  ASSERT_EQ(second.all<Display>().size(), 1u);
  EXPECT_EQ(second.all<Display>()[0].data.at("text/plain").as_string(), "[1] 42");
}

TEST_F(JupyterR, PlotsArePictures) {
  const auto displays = execute("plot(1:10)").all<Display>();
  ASSERT_EQ(displays.size(), 1u);
  EXPECT_TRUE(displays[0].data.at("image/png").as_string().starts_with("iVBOR"));
}

TEST_F(JupyterR, AnErrorIsToldOnceAndTheKernelGoesOn) {
  const auto errors = execute("stop('oops')").all<RunError>();
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_NE(errors[0].value.find("oops"), std::string::npos);
  EXPECT_EQ(outcome_, RunOutcome::kDone);
  EXPECT_EQ(execute("cat('on')").printed(), "on");
}

TEST_F(JupyterR, VariablesAreOfOneRunWhateverTheyHold) {
  const std::string odd = "it's \"quoted\" \\ \xC3\xA9\n$(x)";
  (void)execute("Sys.setenv(OLD = 'before'); Sys.getenv <- function(...) 'masked'");
  EXPECT_EQ(execute("cat(base::Sys.getenv('NEW'), base::Sys.getenv('OLD'), sep = '|')",
                    {{"NEW", odd}, {"OLD", "during"}})
                .printed(),
            cat(odd, "|during"));
  const Recorder after =
      execute("cat(base::Sys.getenv('NEW', 'gone'), base::Sys.getenv('OLD'), ls())");
  EXPECT_EQ(after.printed(), "gone before Sys.getenv");
  EXPECT_EQ(after.all<RunStarted>().at(0).execution_count, 3);
}

TEST_F(JupyterR, AnInterruptEndsTheRunAndKeepsTheState) {
  (void)execute("x <- 7");
  bool interrupted = false;
  net::spawn(loop_, [](Kernel& kernel, bool& done) -> Task<void> {
    co_await net::sleep_for(std::chrono::milliseconds(300));
    kernel.interrupt();
    done = true;
  }(*kernel_, interrupted));
  const auto errors = execute("repeat Sys.sleep(0.01)").all<RunError>();
  EXPECT_TRUE(interrupted);
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].name, "ExecutionAborted");
  EXPECT_EQ(outcome_, RunOutcome::kDone);
  EXPECT_EQ(execute("cat(x)").printed(), "7");
}

TEST_F(JupyterR, AnInterruptOfCodeThatHasBegunHasArrived) {
  Recorder recorder;
  net::spawn(loop_, [](Kernel& kernel, const Recorder& seen) -> Task<void> {
    while (seen.printed() != "on") co_await net::sleep_for(std::chrono::milliseconds(5));
    co_await net::sleep_for(std::chrono::milliseconds(150));
    EXPECT_FALSE(kernel.interrupt_arrived());
    kernel.interrupt();
    EXPECT_TRUE(kernel.interrupt_arrived());
  }(*kernel_, recorder));
  const char* code = "cat('on'); flush(stdout()); repeat Sys.sleep(0.01)";
  EXPECT_EQ(run(loop_, kernel_->execute({.code = code, .env_vars = {}}, recorder)),
            RunOutcome::kDone);
  EXPECT_TRUE(kernel_->interrupt_arrived());
  (void)execute("1");
  EXPECT_FALSE(kernel_->interrupt_arrived()) << "it was for another run";
}

TEST_F(JupyterR, AnInterruptThatComesBehindARunDoesNotHitTheNextOne) {
  const std::string pid = execute("x <- 7; cat(Sys.getpid())").printed();
  ASSERT_FALSE(pid.empty());
  for (int i = 0; i < 8; ++i) {
    ASSERT_EQ(::kill(std::stoi(pid), SIGINT), 0);
    const Recorder next = execute("cat(x)");
    EXPECT_EQ(next.printed(), "7") << i;
    EXPECT_TRUE(next.all<RunError>().empty()) << i;
    ASSERT_EQ(outcome_, RunOutcome::kDone);
  }
}

TEST_F(JupyterR, ADeadKernelSaysSoAndANewOneWorks) {
  (void)execute("cat('bye'); tools::pskill(Sys.getpid(), 9)");
  EXPECT_EQ(outcome_, RunOutcome::kDied);
  run(loop_, kernel_->end());
  kernel_ = make();
  ASSERT_TRUE(run(loop_, kernel_->start()));
  EXPECT_EQ(execute("cat('back')").printed(), "back");
}

TEST_F(JupyterR, NoLineIsLost) {
  const std::string printed = execute("for (i in 1:20000) cat(i, '\\n', sep = '')").printed();
  EXPECT_EQ(std::count(printed.begin(), printed.end(), '\n'), 20000);
  EXPECT_TRUE(printed.ends_with("\n20000\n"));
}

TEST_F(JupyterR, OutputOfProgramsArrives) {
  EXPECT_NE(execute("invisible(system('echo from a program'))").printed().find("from a program"),
            std::string::npos);
}

TEST(JupyterKernel, UnknownKernelsAreNotFound) {
  boost::asio::io_context loop;
  const auto reaper = *agent::ChildReaper::create(loop.get_executor());
  const auto kernel = make_jupyter_kernel(loop.get_executor(), *reaper, "no-such-language", {}, {});
  ASSERT_FALSE(kernel);
  EXPECT_EQ(kernel.error().code(), Code::kNotFound);
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <boost/asio/any_io_executor.hpp>

#include "base/strings.h"
#include "interpreter/kernel.h"
#include "net/notifier.h"

namespace alcove::interpreter::testing {

// Kernels without processes. Their code: "print X", "wait" (until finish() or an interrupt),
// "twice" (until the second interrupt), "deaf" (until the kernel ends), "stubborn" (the same, and
// it hears interrupts), "mute" (the same, and nothing is said), "flood" (prints until then), "die",
// and "die unheard" (before anything was said).
class FakeKernels {
 public:
  explicit FakeKernels(const boost::asio::any_io_executor& executor)
      : state_(std::make_shared<State>(executor)) {}

  Result<std::unique_ptr<Kernel>> make() { return std::make_unique<FakeKernel>(state_); }

  int made() const { return state_->made; }
  int alive() const { return state_->alive; }
  int interrupts() const { return state_->interrupts; }
  // The code under way.
  const std::string& running() const { return state_->running; }
  // All code that began, in order.
  const std::string& log() const { return state_->log; }

  // Ends a "wait".
  void finish() {
    state_->finished = true;
    state_->changed.notify_all();
  }
  // The kernel's process ends while nobody uses it.
  void kill_idle() { state_->killed = true; }
  void run_away() { state_->runs_away = true; }
  void fail_starts(std::string reason) { state_->failure = std::move(reason); }
  // Kernels that are started from now on do not get ready.
  void hold_starts(bool hold) { state_->holds_starts = hold; }

 private:
  struct State {
    explicit State(const boost::asio::any_io_executor& executor) : changed(executor) {}
    net::Notifier changed;
    int made = 0;
    int alive = 0;
    int interrupts = 0;
    bool finished = false;
    bool killed = false;
    bool runs_away = false;
    bool holds_starts = false;
    std::string failure;
    std::string running;
    std::string log;
  };

  class FakeKernel final : public Kernel {
   public:
    explicit FakeKernel(std::shared_ptr<State> state) : state_(std::move(state)) {}

    Task<Result<void>> start() override {
      ++state_->made;
      if (!state_->failure.empty()) co_return fail(Code::kUnavailable, state_->failure);
      ++state_->alive;
      alive_ = true;
      while (alive_ && state_->holds_starts) co_await state_->changed.wait();
      if (!alive_) co_return fail(Code::kUnavailable, "ended");
      state_->killed = false;
      state_->runs_away = false;
      co_return Result<void>();
    }

    Task<RunOutcome> execute(Execution execution, EventSink& sink) override {
      if (state_->killed || execution.code == "die unheard") co_return RunOutcome::kDied;
      executing_ = true;
      state_->log += cat(state_->log.empty() ? "" : ", ", execution.code);
      state_->running = execution.code;
      interrupted_ = 0;
      hears_ = execution.code != "deaf";
      if (execution.code != "mute") co_await sink.emit(RunStarted{.execution_count = 1});
      constexpr std::string_view kPrint = "print ";
      if (execution.code.starts_with(kPrint)) {
        co_await sink.emit(StreamOutput{.name = StreamOutput::Name::kStdout,
                                        .text = execution.code.substr(kPrint.size())});
      }
      while (alive_ && execution.code == "flood") {
        co_await sink.emit(
            StreamOutput{.name = StreamOutput::Name::kStdout, .text = std::string(16 * 1024, 'x')});
      }
      const bool listens = execution.code.starts_with("wait");
      const bool twice = execution.code == "twice";
      const bool waits = listens || twice || execution.code == "deaf" ||
                         execution.code == "stubborn" || execution.code == "mute";
      const auto over = [&] {
        return (listens && (interrupted_ > 0 || state_->finished)) || (twice && interrupted_ > 1);
      };
      while (waits && alive_ && !over()) co_await state_->changed.wait();
      state_->running.clear();
      executing_ = false;
      state_->changed.notify_all();
      co_return alive_&& execution.code != "die" ? RunOutcome::kDone : RunOutcome::kDied;
    }

    void interrupt() override {
      ++state_->interrupts;
      ++interrupted_;
      state_->changed.notify_all();
    }

    bool interrupt_arrived() const override { return hears_ && interrupted_ > 0; }
    bool runs_away() const override { return state_->runs_away; }

    Task<void> end() override {
      if (std::exchange(alive_, false)) --state_->alive;
      state_->changed.notify_all();
      while (executing_) co_await state_->changed.wait();
    }

   private:
    std::shared_ptr<State> state_;
    bool alive_ = false;
    bool executing_ = false;
    int interrupted_ = 0;
    bool hears_ = true;
  };

  std::shared_ptr<State> state_;
};

}  // namespace alcove::interpreter::testing

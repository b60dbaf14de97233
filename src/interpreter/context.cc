// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/context.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"

namespace alcove::interpreter {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::string_view kStateIsLost =
    "The kernel was restarted since the last run: its variables are gone.\n";

// The events of the first run in a kernel that took the place of another.
class ToldOfLoss final : public EventSink {
 public:
  explicit ToldOfLoss(EventSink& sink) : sink_(sink) {}
  Task<void> emit(RunEvent event) override {
    const bool is_start = std::holds_alternative<RunStarted>(event);
    co_await sink_.emit(std::move(event));
    if (!is_start) co_return;
    co_await sink_.emit(
        StreamOutput{.name = StreamOutput::Name::kStderr, .text = std::string(kStateIsLost)});
  }

 private:
  EventSink& sink_;
};

RunError removed_error() {
  return {"UnexpectedEndOfExecution",
          "Connection to the execution was closed before the execution was finished", ""};
}

// A task that keeps the context while it runs.
Task<void> keep(std::shared_ptr<Context> context, Task<void> task) {
  co_await std::move(task);
  (void)context;
}

}  // namespace

uint64_t Context::line_up(Place place) {
  const uint64_t ticket = ++last_ticket_;
  const bool behind_first = place == Place::kNext && !queue_.empty();
  queue_.insert(behind_first ? queue_.begin() + 1 : queue_.end(), ticket);
  changed_.notify_all();
  return ticket;
}

Task<void> Context::wait_for_turn(uint64_t ticket) {
  while (queue_.front() != ticket) co_await changed_.wait();
}

void Context::leave() {
  queue_.pop_front();
  changed_.notify_all();
}

Task<Result<void>> Context::ensure_kernel() {
  if (kernel_) co_return Result<void>();
  start_failed_ = true;
  auto made = make_kernel_();
  if (!made) co_return fail(std::move(made).error());
  kernel_ = std::move(*made);
  starting_ = true;
  auto started = co_await kernel_->start();
  starting_ = false;
  start_failed_ = !started;
  if (!started) co_await drop_kernel();
  co_return started;
}

Task<void> Context::drop_kernel() {
  const auto kernel = std::exchange(kernel_, nullptr);
  if (kernel) co_await kernel->end();
}

Task<Result<void>> Context::start_in_turn(Place place, bool anew) {
  for (;;) {
    const uint64_t ticket = line_up(place);
    if (anew) co_await end_current();
    co_await wait_for_turn(ticket);
    if (anew) {
      co_await drop_kernel();
      lost_state_ = false;
    }
    const uint64_t restarts = restarts_;
    Result<void> started;
    if (!removed_) started = co_await ensure_kernel();
    leave();
    // A restart ended this start, and has a kernel made in its own turn.
    if (started || removed_ || restarts == restarts_) co_return started;
    anew = false;
  }
}

Task<Result<void>> Context::warm_up() {
  const auto self = shared_from_this();
  co_return co_await start_in_turn(Place::kLast, /*anew=*/false);
}

void Context::run(Execution execution, std::shared_ptr<RunStream> stream) {
  net::spawn(executor_,
             keep(shared_from_this(), run_in_turn(std::move(execution), std::move(stream))));
}

Task<void> Context::run_in_turn(Execution execution, std::shared_ptr<RunStream> stream) {
  waiting_.push_back(stream);
  co_await wait_for_turn(line_up(Place::kLast));
  std::erase(waiting_, stream);
  current_ = stream;
  if (!stream->left()) co_await run_code(execution, *stream);
  // What was interrupted may have left a fork bomb behind.
  if (stream->left() && kernel_ && kernel_->runs_away()) {
    co_await drop_kernel();
    lost_state_ = true;
  }
  stream->close();
  current_ = nullptr;
  leave();
  // The next run finds a fresh kernel already there. What has just failed to start waits for it.
  if (!kernel_ && !start_failed_ && !removed_ && queue_.empty()) (void)co_await warm_up();
}

Task<void> Context::run_code(const Execution& execution, RunStream& stream) {
  // A kernel that died while nobody used it costs nobody a run: it is replaced once.
  for (int attempt = 0; attempt < 2; ++attempt) {
    if (removed_) co_return co_await stream.emit(removed_error());
    const bool fresh = !kernel_;
    const uint64_t restarts = restarts_;
    const auto started = co_await ensure_kernel();
    // Whoever ends the context, or its kernel, does not wait for this run.
    if (removed_ || restarts != restarts_) break;
    if (!started) {
      co_return co_await stream.emit(RunError{
          "KernelError", cat("Failed to start the kernel: ", started.error().message()), ""});
    }
    if (stream.left()) co_return;
    const auto kernel = kernel_;
    ToldOfLoss told(stream);
    EventSink& sink = lost_state_ ? static_cast<EventSink&>(told) : stream;
    executing_ = true;
    const RunOutcome outcome = co_await kernel->execute(execution, sink);
    executing_ = false;
    if (!stream.left()) lost_state_ = false;
    if (outcome == RunOutcome::kDone) co_return;
    co_await drop_kernel();
    if (restarts == restarts_) lost_state_ = stream.left() || !fresh;
    if (fresh || stream.used() || stream.left() || restarts != restarts_) break;
  }
  // This run hears of it by its error.
  if (!stream.left()) lost_state_ = false;
  co_await stream.emit(removed_ ? removed_error()
                                : RunError{"ContextRestarting", "Context was restarted", ""});
}

void Context::cancel(std::shared_ptr<RunStream> stream) {
  stream->leave();
  if (current_ == stream) net::spawn(executor_, keep(shared_from_this(), stop_run(stream)));
}

bool Context::executes(const std::shared_ptr<RunStream>& stream) const {
  return current_ == stream && executing_;
}

bool Context::others_wait() const {
  return std::ranges::any_of(waiting_, [](const auto& stream) { return !stream->left(); });
}

Task<void> Context::wait_for_end(std::shared_ptr<RunStream> stream, Clock::time_point until) {
  while (executes(stream) && Clock::now() < until) (void)co_await changed_.wait_until(until);
}

Task<void> Context::stop_run(std::shared_ptr<RunStream> stream) {
  const auto begun = Clock::now();
  // An interrupt is lost among the processes of a fork bomb, and gives each of them work.
  bool hopeless = false;
  using std::chrono::milliseconds;
  for (const auto at : {milliseconds(0), patience_.second, patience_.third, patience_.for_others}) {
    co_await wait_for_end(stream, begun + at);
    if (!executes(stream)) co_return;
    hopeless = kernel_->runs_away();
    if (hopeless) break;
    if (at < patience_.for_others && !kernel_->interrupt_arrived()) kernel_->interrupt();
  }
  const auto until = begun + patience_.alone;
  while (!hopeless && executes(stream) && !others_wait() && Clock::now() < until) {
    (void)co_await changed_.wait_until(until);
    hopeless = executes(stream) && kernel_->runs_away();
  }
  if (!hopeless && executes(stream)) {
    // What heard the first one may have gone on to something else.
    kernel_->interrupt();
    co_await wait_for_end(stream, Clock::now() + patience_.last);
  }
  if (!executes(stream)) co_return;
  const auto kernel = kernel_;
  if (kernel) co_await kernel->end();
}

Task<void> Context::end_current() {
  // Its client may have stopped reading.
  if (current_) current_->hurry();
  if (const auto kernel = kernel_; kernel && (executing_ || starting_)) co_await kernel->end();
}

Task<Result<void>> Context::restart() {
  const auto self = shared_from_this();
  ++restarts_;
  co_return co_await start_in_turn(Place::kNext, /*anew=*/true);
}

Task<void> Context::remove() {
  const auto self = shared_from_this();
  removed_ = true;
  const uint64_t ticket = line_up(Place::kNext);
  co_await end_current();
  co_await wait_for_turn(ticket);
  co_await drop_kernel();
  leave();
}

}  // namespace alcove::interpreter

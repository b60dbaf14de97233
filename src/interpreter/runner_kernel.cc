// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/runner_kernel.h"

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <iterator>
#include <utility>

#include "agent/start_program.h"
#include "base/strings.h"
#include "interpreter/kernel_processes.h"
#include "net/event_loops.h"
#include "net/timer.h"

namespace alcove::interpreter {
namespace {

using Clock = std::chrono::steady_clock;

// A JVM on a busy machine takes seconds.
constexpr std::chrono::seconds kStartLimit{60};
// That wait for the run; the runner's writes wait then. One alone may be larger.
constexpr size_t kMaxMessagesWaiting = 16;
constexpr size_t kMaxBytesWaiting = size_t{8} << 20;
constexpr size_t kReadSize = 64 * 1024;
}  // namespace

RunnerKernel::RunnerKernel(const boost::asio::any_io_executor& executor, agent::ChildReaper& reaper,
                           std::vector<std::string> command, KernelSetup setup)
    : executor_(executor),
      reaper_(reaper),
      command_(std::move(command)),
      setup_(std::move(setup)),
      watchers_(executor),
      wake_(executor),
      taken_(executor) {}

RunnerKernel::~RunnerKernel() = default;

Result<void> RunnerKernel::spawn() {
  int sockets[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return fail_errno(errno, "socketpair");
  }
  UniqueFd ours(sockets[0]);
  const UniqueFd theirs(sockets[1]);
  agent::ProgramStart program{.argv = command_,
                              .environment = setup_.environment,
                              .directory = setup_.directory,
                              .fds = {-1}};
  std::array<UniqueFd, 2> write_ends;
  for (const auto name : {StreamOutput::Name::kStdout, StreamOutput::Name::kStderr}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
    write_ends[pipes_.size()].reset(ends[1]);
    pipes_.push_back(
        std::make_unique<OutputPipe>(name, net::FdStream(executor_, UniqueFd(ends[0]))));
    program.fds.push_back(ends[1]);
  }
  program.fds.push_back(theirs.get());
  ALCOVE_TRY_ASSIGN(pid_, agent::start_program(program));
  make_kernel_give_way(pid_);
  // What the kernel forked may hold the socket open: with it, its whole session ends.
  reaper_.watch(pid_, [exited = exited_, pid = pid_](int) {
    *exited = true;
    kill_kernel(pid);
  });
  socket_ = std::make_unique<net::TcpStream>(executor_, std::move(ours));
  watchers_.spawn(read_frames());
  for (const auto& pipe : pipes_) watchers_.spawn(watch_pipe(*pipe));
  return {};
}

Task<Result<void>> RunnerKernel::start() {
  ALCOVE_CO_TRY(spawn());
  const auto limit = Clock::now() + kStartLimit;
  for (;;) {
    while (!messages_.empty()) {
      const bool ready = std::holds_alternative<RunnerReady>(take_message());
      if (ready) co_return Result<void>();
    }
    if (dead_) {
      // What it said is the only explanation there is.
      std::string said;
      for (const auto& pipe : pipes_) {
        (void)pipe->collect();
        if (auto event = pipe->take_last()) said += std::get<StreamOutput>(*event).text;
      }
      if (said.empty()) said = "it said nothing; perhaps there is no memory left";
      constexpr size_t kMostSaid = 2000;
      if (said.size() > kMostSaid) said.erase(0, said.size() - kMostSaid);
      co_return fail(Code::kUnavailable, cat("the kernel ended at its start: ", said));
    }
    if (!co_await wake_.wait_until(limit) && Clock::now() >= limit) {
      co_return fail(Code::kDeadlineExceeded, "the kernel did not get ready");
    }
  }
}

Task<void> RunnerKernel::read_frames() {
  FrameParser parser;
  std::vector<char> buffer(kReadSize);
  while (co_await socket_->wait_readable()) {
    // What was printed before a frame is in the pipes once the frame is in the socket. A runner
    // that prints on after it waits until the frame was taken.
    if (running_) {
      for (const auto& pipe : pipes_)
        std::ranges::move(pipe->take_present(), back_inserter(printed_));
    }
    const auto count = co_await socket_->read_some(buffer);
    if (!count || *count == 0) break;
    parser.append({buffer.data(), *count});
    for (;;) {
      auto frame = parser.next();
      if (!frame) {
        mark_dead();
        co_return;
      }
      if (!*frame) break;
      const size_t bytes = (*frame)->size();
      RunnerMessage message = parse_runner_message(*std::exchange(*frame, {}));
      co_await deliver(std::move(message), bytes);
    }
  }
  mark_dead();
}

RunnerMessage RunnerKernel::take_message() {
  Waiting first = std::move(messages_.front());
  messages_.pop_front();
  waiting_bytes_ -= first.bytes;
  taken_.notify_all();
  return std::move(first.message);
}

Task<void> RunnerKernel::deliver(RunnerMessage message, size_t bytes) {
  const auto* event = std::get_if<RunnerEvent>(&message);
  const bool starts =
      event != nullptr && event->id == last_id_ && std::holds_alternative<RunStarted>(event->event);
  std::vector<Waiting> messages;
  if (starts && !started_) {
    started_ = true;
    if (interrupt_wanted_) send_interrupt();
  }
  if (started_) {
    for (RunEvent& text : printed_) {
      const size_t size = std::get<StreamOutput>(text).text.size();
      messages.emplace_back(RunnerEvent{last_id_, std::move(text)}, size);
    }
    printed_.clear();
  }
  messages.emplace(starts ? messages.begin() : messages.end(), std::move(message), bytes);
  for (Waiting& one : messages) {
    while (messages_.size() >= kMaxMessagesWaiting ||
           (!messages_.empty() && waiting_bytes_ + one.bytes > kMaxBytesWaiting)) {
      co_await taken_.wait();
    }
    waiting_bytes_ += one.bytes;
    messages_.push_back(std::move(one));
    wake_.notify_all();
  }
}

void RunnerKernel::mark_dead() {
  dead_ = true;
  wake_.notify_all();
}

Task<void> RunnerKernel::watch_pipe(OutputPipe& pipe) {
  while (!pipe.closed()) {
    if (!co_await pipe.stream().wait_readable()) co_return;
    if (!running_) {
      // Between two runs nobody listens. While it starts, what it says is kept for the error.
      if (last_id_ > 0)
        pipe.discard();
      else
        (void)pipe.collect();
      if (last_id_ > 0 || pipe.closed()) continue;
      co_await taken_.wait();
      continue;
    }
    wake_.notify_all();
    co_await taken_.wait();
  }
}

Task<void> RunnerKernel::emit_printed(EventSink& sink) {
  for (const auto& pipe : pipes_) {
    std::vector<RunEvent> present = pipe->take_present();
    for (RunEvent& text : present) co_await sink.emit(std::move(text));
  }
}

Task<OutputPipe::TimePoint> RunnerKernel::emit_due(EventSink& sink) {
  auto next = OutputPipe::TimePoint::max();
  bool all_empty = true;
  for (const auto& pipe : pipes_) {
    all_empty = pipe->collect() && all_empty;
    const auto due = pipe->due();
    if (!due) continue;
    if (*due <= Clock::now()) {
      if (auto event = pipe->take_due()) co_await sink.emit(*std::move(event));
    }
    if (const auto later = pipe->due()) next = std::min(next, *later);
  }
  // More is there than one event takes.
  co_return all_empty ? next : OutputPipe::TimePoint::min();
}

Task<RunOutcome> RunnerKernel::execute(Execution execution, EventSink& sink) {
  const int64_t id = ++last_id_;
  for (const auto& pipe : pipes_) pipe->discard();
  printed_.clear();
  started_ = false;
  running_ = true;
  const auto before = interrupt_sent_ ? Before::kInterrupt : Before::kNothing;
  interrupt_wanted_ = false;
  interrupt_sent_ = false;
  const std::string request = execute_frame(id, execution, before);
  if (!co_await socket_->write(request)) mark_dead();
  bool done = false;
  while (!done) {
    if (!messages_.empty()) {
      RunnerMessage message = take_message();
      if (const auto* end = std::get_if<RunnerDone>(&message)) done = end->id == id;
      if (auto* event = std::get_if<RunnerEvent>(&message); event != nullptr && event->id == id) {
        co_await sink.emit(std::move(event->event));
      }
      continue;
    }
    auto next = OutputPipe::TimePoint::max();
    if (started_) next = co_await emit_due(sink);
    taken_.notify_all();
    if (!messages_.empty()) continue;
    if (next == OutputPipe::TimePoint::min()) {
      // Who prints without a pause must not keep others, and the run's own end, from their turn.
      co_await net::yield();
      if (!dead_ || !messages_.empty()) continue;
    }
    if (dead_) break;
    (void)co_await wake_.wait_until(next);
  }
  // The last words of a kernel that died.
  std::vector<RunEvent> last_words = std::exchange(printed_, {});
  for (RunEvent& text : last_words) co_await sink.emit(std::move(text));
  co_await emit_printed(sink);
  for (const auto& pipe : pipes_) {
    if (auto event = pipe->take_last()) co_await sink.emit(*std::move(event));
  }
  running_ = false;
  taken_.notify_all();
  co_return done ? RunOutcome::kDone : RunOutcome::kDied;
}

void RunnerKernel::interrupt() {
  if (!running_) return;
  // Runners end what they said has started. Who asks again may have to do with what an earlier run
  // left busy.
  if (started_ || interrupt_wanted_) send_interrupt();
  interrupt_wanted_ = true;
}

void RunnerKernel::send_interrupt() {
  interrupt_sent_ = true;
  if (!*exited_) ::kill(-pid_, SIGINT);
}

bool RunnerKernel::runs_away() const { return pid_ > 0 && !*exited_ && is_fork_bomb(pid_); }

Task<void> RunnerKernel::end() {
  if (pid_ > 0 && !*exited_) kill_kernel(pid_);
  if (socket_) socket_->close();
  mark_dead();
  // Waited for by the reaper, which hears of it by a signal.
  constexpr std::chrono::milliseconds kLook{2};
  for (int i = 0; pid_ > 0 && !*exited_ && i < 2500; ++i) {
    (void)co_await wake_.wait_until(Clock::now() + kLook);
  }
  while (running_) co_await taken_.wait();
  co_await watchers_.stop();
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process.h"

#include <signal.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/defer.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

// One event carries at most what one read returns (protocol/envd.md 2A.4).
constexpr size_t kPipeRead = 32 * 1024;
constexpr size_t kTerminalRead = 16 * 1024;
// Reads in a row before others get their turn: a process that nobody listens to can print for ever.
constexpr int kReadsInARow = 16;
// What is read of an output that others keep open after the process was killed: a full pipe.
constexpr size_t kMaxDrain = 64 * 1024;

// Reads are made and published without waiting in between, so all processes share one buffer. The
// agent has one loop.
std::span<char> read_buffer(OutputKind kind) {
  static std::array<char, kPipeRead> buffer;
  return std::span(buffer).first(kind == OutputKind::kTerminal ? kTerminalRead : kPipeRead);
}

}  // namespace

Process::Process(const boost::asio::any_io_executor& executor, ProcessInfo info, Spawned spawned)
    : executor_(executor),
      info_(std::move(info)),
      input_free_(executor),
      room_(executor),
      gone_(executor),
      deadline_timer_(executor) {
  if (spawned.terminal.valid()) {
    has_terminal_ = true;
    add_output(OutputKind::kTerminal, std::move(spawned.terminal));
    return;
  }
  add_output(OutputKind::kStdout, std::move(spawned.output));
  add_output(OutputKind::kStderr, std::move(spawned.error_output));
  if (spawned.input.valid()) input_.emplace(executor, std::move(spawned.input));
}

Process::~Process() = default;

void Process::add_output(OutputKind kind, UniqueFd fd) {
  outputs_.push_back({kind, net::FdStream(executor_, std::move(fd))});
}

void Process::start(std::function<void(Process&)> on_end) {
  on_end_ = std::move(on_end);
  // Killed while it was being started: nothing else would say that it is over.
  if (end_) return report_end();
  for (Output& output : outputs_) net::spawn(executor_, pump(shared_from_this(), output));
}

void Process::set_deadline(TimePoint deadline) {
  deadline_timer_.expires_at(deadline);
  deadline_timer_.async_wait([weak = weak_from_this()](boost::system::error_code error) {
    const auto self = weak.lock();
    if (!error && self) (void)self->signal(SIGKILL);
  });
}

void Process::exited(int wait_status) {
  wait_status_ = wait_status;
  gone_.notify_all();
  end_if_over();
}

std::shared_ptr<Outbox> Process::subscribe(connect::Codec codec) {
  auto subscriber = std::make_shared<Outbox>(executor_, codec);
  append_start_event(codec, info_.pid, subscriber->pending);
  if (end_) {
    append_end_event(codec, *end_, subscriber->pending);
    subscriber->close();
  } else {
    subscribers_.push_back(subscriber);
  }
  return subscriber;
}

void Process::unsubscribe(const std::shared_ptr<Outbox>& subscriber) {
  subscribers_.remove(subscriber);
  room_.notify_all();
}

bool Process::has_room() const {
  return std::all_of(subscribers_.begin(), subscribers_.end(),
                     [](const auto& subscriber) { return subscriber->has_room(); });
}

Task<void> Process::pump(std::shared_ptr<Process> self, Output& output) {
  // What has just been started has printed nothing yet.
  bool is_empty = true;
  for (int reads = 0;;) {
    if (is_empty && !co_await output.stream.wait_readable()) break;
    while (!has_room() && output.open) co_await room_.wait();
    if (!output.open) co_return;
    const auto buffer = read_buffer(output.kind);
    const auto count = output.stream.try_read(buffer);
    is_empty = !count;
    if (is_empty) continue;
    if (!*count || **count == 0) break;
    publish(output.kind, std::string_view(buffer.data(), **count));
    if (++reads % kReadsInARow == 0) co_await net::yield();
  }
  if (!output.open) co_return;
  output.open = false;
  output.stream.close();
  end_if_over();
}

void Process::publish(OutputKind kind, std::string_view data) {
  const Outbox* first = nullptr;
  size_t begin = 0;
  for (const auto& subscriber : subscribers_) {
    if (first != nullptr && first->codec == subscriber->codec) {
      subscriber->pending.append(first->pending, begin);
    } else {
      const size_t before = subscriber->pending.size();
      append_output_event(subscriber->codec, kind, data, subscriber->pending);
      if (first == nullptr) {
        first = subscriber.get();
        begin = before;
      }
    }
    subscriber->added();
  }
}

void Process::drain(Output& output) {
  const auto buffer = read_buffer(output.kind);
  for (size_t total = 0; total < kMaxDrain;) {
    const auto count = output.stream.try_read(buffer);
    if (!count || !*count || **count == 0) return;
    publish(output.kind, std::string_view(buffer.data(), **count));
    total += **count;
  }
}

void Process::end_if_over() {
  if (end_ || !wait_status_) return;
  for (Output& output : outputs_) {
    if (!output.open) continue;
    if (!ignores_open_outputs_) return;
    drain(output);
    output.open = false;
    output.stream.close();
  }
  room_.notify_all();
  deadline_timer_.cancel();
  if (input_) input_->close();
  end_ = describe_exit(*wait_status_);
  for (const auto& subscriber : subscribers_) {
    append_end_event(subscriber->codec, *end_, subscriber->pending);
    subscriber->close();
  }
  subscribers_.clear();
  report_end();
}

// The last that is done: it may drop the process.
void Process::report_end() {
  if (const auto on_end = std::exchange(on_end_, nullptr)) on_end(*this);
}

Result<void> Process::signal(int number) {
  const auto self = shared_from_this();
  ignores_open_outputs_ = true;
  if (wait_status_) {
    // The pid may belong to somebody else by now.
    end_if_over();
    return {};
  }
  if (::kill(static_cast<pid_t>(info_.pid), number) != 0) {
    return fail(Code::kInternal, Error::from_errno(errno, cat("signal ", info_.pid)).message());
  }
  return {};
}

Task<void> Process::wait_until_gone(TimePoint deadline) {
  const auto self = shared_from_this();
  while (!wait_status_ && co_await gone_.wait_until(deadline)) continue;
}

Task<Result<void>> Process::write_input(InputKind kind, std::string data,
                                        std::optional<TimePoint> deadline) {
  const auto self = shared_from_this();
  if ((kind == InputKind::kTerminal) != has_terminal_) {
    co_return fail(Code::kInternal, has_terminal_ ? "the process has a terminal, not a stdin"
                                                  : "the process has no terminal");
  }
  const auto is_open = [this] { return !end_ && (has_terminal_ || input_); };
  const auto closed = [] { return fail(Code::kInternal, "stdin of the process is not open"); };
  if (!is_open() || close_input_requested_) co_return closed();
  const uint64_t number = next_write_++;
  writes_.push_back(number);
  // Also when a canceled task leaves by an exception: the next one would wait for ever.
  const Defer free_input([this, number] {
    std::erase(writes_, number);
    if (writes_.empty() && close_input_requested_) input_.reset();
    input_free_.notify_all();
  });
  while (writes_.front() != number) {
    const bool notified =
        deadline ? co_await input_free_.wait_until(*deadline) : (co_await input_free_.wait(), true);
    if (!notified) co_return fail(Code::kDeadlineExceeded, "the process does not read its input");
  }
  if (!is_open()) co_return closed();
  net::FdStream& stream = has_terminal_ ? outputs_.front().stream : *input_;
  stream.set_write_deadline(deadline);
  auto written = co_await stream.write_all(data);
  if (written || written.error().code() == Code::kDeadlineExceeded) co_return written;
  co_return fail(Code::kInternal, cat("write to the process: ", written.error().message()));
}

Result<void> Process::close_input() {
  if (has_terminal_) return fail(Code::kUnknown, "the stdin of a terminal cannot be closed");
  close_input_requested_ = true;
  if (writes_.empty()) input_.reset();
  return {};
}

Result<void> Process::resize(TerminalSize size) {
  if (!has_terminal_) return fail(Code::kInternal, "the process has no terminal");
  winsize wanted{};
  wanted.ws_col = size.cols;
  wanted.ws_row = size.rows;
  if (end_ || ::ioctl(outputs_.front().stream.fd(), TIOCSWINSZ, &wanted) != 0) {
    return fail(Code::kInternal, "resize the terminal");
  }
  return {};
}

}  // namespace alcove::agent

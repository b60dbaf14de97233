// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/outbox.h"
#include "agent/process_messages.h"
#include "agent/spawn.h"
#include "base/result.h"
#include "net/fd_stream.h"
#include "net/notifier.h"
#include "net/task.h"

namespace alcove::agent {

// A running command: its pipes or terminal, who listens, and when it is over. Belongs to one loop.
// Output goes to every subscriber; the slowest holds the process up, and without any it is
// discarded. It is over when the process was waited for and all its outputs are closed, or, after a
// signal by us, when it was waited for.
class Process : public std::enable_shared_from_this<Process> {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  Process(const boost::asio::any_io_executor& executor, ProcessInfo info, Spawned spawned);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  TimePoint started_at() const { return started_at_; }
  const ProcessInfo& info() const { return info_; }
  // Set once it is over.
  const std::optional<EndEvent>& end() const { return end_; }
  int wait_status() const { return wait_status_.value_or(0); }

  // Begins to read the outputs; `on_end` is called once when it is over. Subscribers that came
  // before miss nothing.
  void start(std::function<void(Process&)> on_end);
  // Kills the process at that time.
  void set_deadline(TimePoint deadline);
  // The main process was waited for.
  void exited(int wait_status);

  // The subscriber's events begin with the start event.
  std::shared_ptr<Outbox> subscribe(connect::Codec codec);
  void unsubscribe(const std::shared_ptr<Outbox>& subscriber);
  // A subscriber took what was pending: there is room again.
  void taken() { room_.notify_all(); }

  // SIGTERM or SIGKILL to the main process only. From then on its end is not held up by others
  // that have its outputs open.
  Result<void> signal(int number);
  // Until the main process was waited for, so that nobody finds its pid any more.
  Task<void> wait_until_gone(TimePoint deadline);
  // Writes all of it, waiting while the pipe is full; in the order of the calls. kInternal if there
  // is no such input.
  Task<Result<void>> write_input(InputKind kind, std::string data,
                                 std::optional<TimePoint> deadline);
  // After the writes that were called for before; closed already is a success. kUnknown for a
  // terminal.
  Result<void> close_input();
  Result<void> resize(TerminalSize size);

 private:
  struct Output {
    OutputKind kind;
    net::FdStream stream;
    bool open = true;
  };

  void add_output(OutputKind kind, UniqueFd fd);
  Task<void> pump(std::shared_ptr<Process> self, Output& output);
  bool has_room() const;
  void publish(OutputKind kind, std::string_view data);
  void drain(Output& output);
  void end_if_over();
  void report_end();

  boost::asio::any_io_executor executor_;
  const TimePoint started_at_ = std::chrono::steady_clock::now();
  ProcessInfo info_;
  std::optional<net::FdStream> input_;
  std::list<Output> outputs_;
  bool has_terminal_ = false;
  // Writes that were called for and are not done; the first has its turn.
  std::deque<uint64_t> writes_;
  uint64_t next_write_ = 0;
  bool close_input_requested_ = false;
  net::Notifier input_free_;
  net::Notifier room_;
  net::Notifier gone_;
  std::list<std::shared_ptr<Outbox>> subscribers_;
  std::optional<int> wait_status_;
  // A signal by us or the deadline: outputs that others hold open do not count any more.
  bool ignores_open_outputs_ = false;
  std::optional<EndEvent> end_;
  std::function<void(Process&)> on_end_;
  boost::asio::steady_timer deadline_timer_;
};

}  // namespace alcove::agent

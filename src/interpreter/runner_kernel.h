// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "agent/reaper.h"
#include "interpreter/kernel.h"
#include "interpreter/output_pipe.h"
#include "interpreter/runner_frames.h"
#include "net/notifier.h"
#include "net/task_group.h"
#include "net/tcp_stream.h"

namespace alcove::interpreter {

// A kernel that is one of our language runners: frames on its fd 3, output on its fd 1 and 2.
class RunnerKernel final : public Kernel {
 public:
  RunnerKernel(const boost::asio::any_io_executor& executor, agent::ChildReaper& reaper,
               std::vector<std::string> command, KernelSetup setup);
  ~RunnerKernel() override;

  Task<Result<void>> start() override;
  Task<RunOutcome> execute(Execution execution, EventSink& sink) override;
  void interrupt() override;
  bool interrupt_arrived() const override { return started_ && interrupt_sent_; }
  bool runs_away() const override;
  Task<void> end() override;

 private:
  Result<void> spawn();
  // For the process's life: frames, and what was printed before them, become messages.
  Task<void> read_frames();
  // `bytes`: how much of the socket it was.
  Task<void> deliver(RunnerMessage message, size_t bytes);
  RunnerMessage take_message();
  // For the process's life: says that something is there.
  Task<void> watch_pipe(OutputPipe& pipe);
  // Emits what was printed before this moment.
  Task<void> emit_printed(EventSink& sink);
  // Emits output whose time has come; the time at which more is due.
  Task<OutputPipe::TimePoint> emit_due(EventSink& sink);
  void send_interrupt();
  void mark_dead();

  boost::asio::any_io_executor executor_;
  agent::ChildReaper& reaper_;
  std::vector<std::string> command_;
  KernelSetup setup_;
  pid_t pid_ = -1;
  std::unique_ptr<net::TcpStream> socket_;
  std::vector<std::unique_ptr<OutputPipe>> pipes_;
  net::TaskGroup watchers_;
  // Notified when a message, output or the end is there.
  net::Notifier wake_;
  // Notified when the run has taken a message or emptied the pipes.
  net::Notifier taken_;
  struct Waiting {
    RunnerMessage message;
    size_t bytes = 0;
  };
  std::deque<Waiting> messages_;
  // Of all in `messages_`.
  size_t waiting_bytes_ = 0;
  // Printed before the frames that are being read.
  std::vector<RunEvent> printed_;
  int64_t last_id_ = 0;
  // The runner has said that it runs the last request.
  bool started_ = false;
  bool running_ = false;
  // For the run under way, and not to be lost before it has begun.
  bool interrupt_wanted_ = false;
  // Since the run's request was sent.
  bool interrupt_sent_ = false;
  // Nothing more comes on the socket.
  bool dead_ = false;
  // The process was waited for. Shared with the reaper's callback, which may outlive this.
  std::shared_ptr<bool> exited_ = std::make_shared<bool>(false);
};

}  // namespace alcove::interpreter

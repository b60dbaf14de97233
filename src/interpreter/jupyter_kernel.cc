// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_kernel.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "agent/start_program.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/strings.h"
#include "base/time_format.h"
#include "interpreter/jupyter_connection.h"
#include "interpreter/jupyter_kernel_spec.h"
#include "interpreter/jupyter_message.h"
#include "interpreter/jupyter_run.h"
#include "interpreter/kernel_processes.h"
#include "interpreter/languages.h"
#include "interpreter/output_pipe.h"
#include "interpreter/r_variables.h"
#include "interpreter/zmtp_endpoint.h"
#include "interpreter/zmtp_socket.h"
#include "net/notifier.h"
#include "net/task_group.h"
#include "net/timer.h"

namespace alcove::interpreter {
namespace {

using Clock = std::chrono::steady_clock;
using Channel = JupyterConnection::Channel;
using std::chrono::milliseconds;

constexpr std::chrono::seconds kStartLimit{60};
constexpr milliseconds kConnectPause{10};
// After a kernel's reply to the first request: by then its publisher knows us, or is asked again.
constexpr milliseconds kSubscribePause{50};
// A kernel publishes as fast as it can and drops what its queue cannot hold, so we read at once;
// above this it is stopped by a signal until the client has taken most of what waits.
constexpr size_t kStopAt = size_t{16} << 20;
constexpr size_t kContinueAt = size_t{4} << 20;
// An interrupt that comes before the kernel works on the code would be lost: it waits that long.
constexpr milliseconds kAcceptTime{200};
// After a kernel's word that it works on the code: by then an interrupt reaches the code.
constexpr milliseconds kBeginTime{100};
// What a dead kernel had published may still lie in our socket.
constexpr milliseconds kLastWords{500};

class JupyterKernel final : public Kernel {
 public:
  JupyterKernel(const boost::asio::any_io_executor& executor, agent::ChildReaper& reaper,
                JupyterKernelSpec spec, KernelSetup setup, JupyterOptions options)
      : executor_(executor),
        reaper_(reaper),
        spec_(std::move(spec)),
        setup_(std::move(setup)),
        options_(std::move(options)),
        tasks_(executor),
        changed_(executor) {}

  Task<Result<void>> start() override;
  Task<RunOutcome> execute(Execution execution, EventSink& sink) override;
  void interrupt() override;
  bool interrupt_arrived() const override { return interrupt_arrived_; }
  bool runs_away() const override { return pid_ > 0 && !exit_->exited && is_fork_bomb(pid_); }
  Task<void> end() override;

 private:
  using Socket = std::unique_ptr<ZmtpSocket>;

  Result<void> spawn();
  Task<Result<void>> spawn_and_greet();
  Task<Result<Socket>> connect(Channel channel, ZmtpSocketType type, Clock::time_point limit);
  Task<Result<void>> greet(Clock::time_point limit);
  Task<Result<std::string>> send(ZmtpSocket& socket, std::string type, boost::json::object content,
                                 std::string parent);
  Task<void> read_published();
  Task<void> read_replies();
  Task<void> refuse_input();
  Task<void> read_pipe(OutputPipe& pipe);
  Task<void> send_interrupt();
  // Runs code and hands its events to `sink`, if there is one.
  Task<RunOutcome> run(std::string code, JupyterRun::Kind kind, EventSink* sink);
  Task<void> emit_waiting(EventSink* sink);
  void deliver_interrupt();
  void resume();
  bool dead() const;

  boost::asio::any_io_executor executor_;
  agent::ChildReaper& reaper_;
  JupyterKernelSpec spec_;
  KernelSetup setup_;
  JupyterOptions options_;
  std::optional<JupyterConnection> connection_;
  std::string session_ = make_uuid();
  pid_t pid_ = -1;
  Socket shell_;
  Socket published_;
  Socket control_;
  Socket input_;
  std::vector<std::unique_ptr<OutputPipe>> pipes_;
  net::TaskGroup tasks_;
  // Notified when anything was heard.
  net::Notifier changed_;
  std::optional<JupyterRun> run_;
  int64_t next_count_ = 1;
  bool heard_publisher_ = false;
  bool heard_reply_ = false;
  bool user_code_runs_ = false;
  bool starting_ = false;
  bool executing_ = false;
  bool interrupt_wanted_ = false;
  bool interrupt_arrived_ = false;
  bool stopped_ = false;
  bool broken_ = false;
  bool ended_ = false;
  // Shared with the reaper's callback, which may outlive this.
  struct Exit {
    bool exited = false;
    Clock::time_point at;
  };
  std::shared_ptr<Exit> exit_ = std::make_shared<Exit>();
};

std::map<std::string, std::string> as_map(const std::vector<std::string>& environment) {
  std::map<std::string, std::string> variables;
  for (const std::string& variable : environment) {
    const size_t equals = variable.find('=');
    if (equals == std::string::npos) continue;
    variables.insert_or_assign(variable.substr(0, equals), variable.substr(equals + 1));
  }
  return variables;
}

Result<void> JupyterKernel::spawn() {
  ALCOVE_TRY_ASSIGN(JupyterConnection connection,
                    JupyterConnection::create(options_.runtime_dir, spec_.name));
  connection_.emplace(std::move(connection));
  auto variables = as_map(setup_.environment);
  for (const auto& [name, value] : spec_.env) variables.insert_or_assign(name, value);
  agent::ProgramStart program{.argv = jupyter_kernel_command(spec_, connection_->file()),
                              .environment = {},
                              .directory = setup_.directory,
                              .fds = {-1}};
  if (program.argv.front().find('/') == std::string::npos) {
    auto found = find_program(program.argv.front(), variables["PATH"]);
    if (!found) return fail(Code::kNotFound, cat(program.argv.front(), " is not installed"));
    program.argv.front() = *std::move(found);
  }
  for (const auto& [name, value] : variables) program.environment.push_back(cat(name, '=', value));
  std::array<UniqueFd, 2> write_ends;
  for (const auto name : {StreamOutput::Name::kStdout, StreamOutput::Name::kStderr}) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
    write_ends[pipes_.size()].reset(ends[1]);
    pipes_.push_back(
        std::make_unique<OutputPipe>(name, net::FdStream(executor_, UniqueFd(ends[0]))));
    program.fds.push_back(ends[1]);
  }
  ALCOVE_TRY_ASSIGN(pid_, agent::start_program(program));
  make_kernel_give_way(pid_);
  reaper_.watch(pid_, [state = exit_, leader = pid_](int) {
    state->exited = true;
    state->at = Clock::now();
    kill_kernel(leader);
  });
  for (const auto& pipe : pipes_) tasks_.spawn(read_pipe(*pipe));
  return {};
}

Task<Result<JupyterKernel::Socket>> JupyterKernel::connect(Channel channel, ZmtpSocketType type,
                                                           Clock::time_point limit) {
  for (;;) {
    if (ended_ || exit_->exited) {
      co_return fail(Code::kUnavailable, "the kernel ended at its start");
    }
    const auto left = std::chrono::ceil<milliseconds>(limit - Clock::now());
    if (left.count() <= 0) co_return fail(Code::kDeadlineExceeded, "the kernel did not get ready");
    auto stream = co_await connect_zmtp_endpoint(connection_->endpoint(channel), left);
    if (stream) co_return co_await ZmtpSocket::open(std::move(*stream), type, session_, left);
    co_await net::sleep_for(kConnectPause);
  }
}

Task<Result<void>> JupyterKernel::start() {
  starting_ = true;
  auto started = co_await spawn_and_greet();
  starting_ = false;
  changed_.notify_all();
  co_return started;
}

Task<Result<void>> JupyterKernel::spawn_and_greet() {
  ALCOVE_CO_TRY(spawn());
  const auto limit = Clock::now() + kStartLimit;
  // In the order in which most kernels bind them; the last one is there when all are.
  ALCOVE_CO_TRY_ASSIGN(published_, co_await connect(Channel::kIopub, ZmtpSocketType::kSub, limit));
  ALCOVE_CO_TRY_ASSIGN(shell_, co_await connect(Channel::kShell, ZmtpSocketType::kDealer, limit));
  ALCOVE_CO_TRY_ASSIGN(control_,
                       co_await connect(Channel::kControl, ZmtpSocketType::kDealer, limit));
  ALCOVE_CO_TRY_ASSIGN(input_, co_await connect(Channel::kStdin, ZmtpSocketType::kDealer, limit));
  tasks_.spawn(read_published());
  tasks_.spawn(read_replies());
  tasks_.spawn(refuse_input());
  co_return co_await greet(limit);
}

Task<Result<void>> JupyterKernel::greet(Clock::time_point limit) {
  while (!heard_publisher_) {
    if (dead()) co_return fail(Code::kUnavailable, "the kernel ended at its start");
    heard_reply_ = false;
    ALCOVE_CO_TRY(co_await send(*shell_, "kernel_info_request", {}, ""));
    while (!heard_reply_) {
      if (dead()) co_return fail(Code::kUnavailable, "the kernel ended at its start");
      if (Clock::now() >= limit) {
        co_return fail(Code::kDeadlineExceeded, "the kernel did not get ready");
      }
      (void)co_await changed_.wait_until(std::min(limit, Clock::now() + milliseconds(100)));
    }
    const auto patience = Clock::now() + kSubscribePause;
    while (!heard_publisher_ && Clock::now() < patience) {
      (void)co_await changed_.wait_until(patience);
    }
  }
  co_return Result<void>{};
}

Task<Result<std::string>> JupyterKernel::send(ZmtpSocket& socket, std::string type,
                                              boost::json::object content, std::string parent) {
  const JupyterMessage message{
      .type = std::move(type),
      .id = make_uuid(),
      .session = session_,
      .parent_id = std::move(parent),
      .date = format_rfc3339(
          std::chrono::time_point_cast<WallTime::duration>(std::chrono::system_clock::now())),
      .content = std::move(content)};
  ALCOVE_CO_TRY(co_await socket.send(encode_jupyter_message(message, connection_->key())));
  co_return message.id;
}

Task<void> JupyterKernel::read_published() {
  for (;;) {
    const auto frames = co_await published_->receive();
    if (!frames) break;
    heard_publisher_ = true;
    const auto message = decode_jupyter_message(*frames, connection_->key());
    if (message && run_ && message->parent_id == run_->id()) {
      run_->take_published(*message, Clock::now());
      if (run_->waiting_bytes() > kStopAt && !stopped_ && !exit_->exited) {
        stopped_ = true;
        ::kill(-pid_, SIGSTOP);
      }
    }
    changed_.notify_all();
  }
  broken_ = true;
  changed_.notify_all();
}

Task<void> JupyterKernel::read_replies() {
  for (;;) {
    const auto frames = co_await shell_->receive();
    if (!frames) co_return;
    heard_reply_ = true;
    const auto message = decode_jupyter_message(*frames, connection_->key());
    if (message && run_ && message->parent_id == run_->id() && message->type == "execute_reply") {
      run_->take_reply(*message, Clock::now());
    }
    changed_.notify_all();
  }
}

Task<void> JupyterKernel::refuse_input() {
  for (;;) {
    const auto frames = co_await input_->receive();
    if (!frames) co_return;
    // We say that there is no input; a kernel that asks all the same must not wait for ever.
    const auto message = decode_jupyter_message(*frames, connection_->key());
    if (!message || message->type != "input_request") continue;
    boost::json::object answer{{"status", "ok"}, {"value", ""}};
    if (!co_await send(*input_, "input_reply", std::move(answer), message->id)) co_return;
  }
}

// Programs that the code starts print past the kernel's channels.
Task<void> JupyterKernel::read_pipe(OutputPipe& pipe) {
  while (!pipe.closed()) {
    if (!co_await pipe.stream().wait_readable()) co_return;
    while (user_code_runs_ && run_ && run_->waiting_bytes() > kStopAt) co_await changed_.wait();
    (void)pipe.collect();
    auto event = pipe.take();
    if (event && user_code_runs_ && run_) {
      auto& output = std::get<StreamOutput>(*event);
      run_->print(output.name, std::move(output.text));
      changed_.notify_all();
    }
  }
}

bool JupyterKernel::dead() const {
  if (ended_ || broken_) return true;
  return exit_->exited && Clock::now() >= exit_->at + kLastWords;
}

void JupyterKernel::resume() {
  if (!stopped_) return;
  stopped_ = false;
  if (!exit_->exited) ::kill(-pid_, SIGCONT);
}

void JupyterKernel::deliver_interrupt() {
  interrupt_wanted_ = false;
  if (exit_->exited) return;
  resume();
  // Kernels do not say.
  interrupt_arrived_ = run_->accepted() && Clock::now() >= run_->accepted_at() + kBeginTime;
  if (spec_.interrupt_mode == JupyterKernelSpec::InterruptMode::kSignal) {
    ::kill(-pid_, SIGINT);
  } else {
    tasks_.spawn(send_interrupt());
  }
}

Task<void> JupyterKernel::send_interrupt() {
  (void)co_await send(*control_, "interrupt_request", {}, "");
}

void JupyterKernel::interrupt() {
  if (!executing_) return;
  interrupt_wanted_ = true;
  if (user_code_runs_ && run_ && run_->accepted()) deliver_interrupt();
  changed_.notify_all();
}

Task<void> JupyterKernel::emit_waiting(EventSink* sink) {
  while (run_->has_event()) {
    RunEvent event = run_->next_event();
    if (stopped_ && run_->waiting_bytes() < kContinueAt) resume();
    changed_.notify_all();
    if (sink != nullptr) co_await sink->emit(std::move(event));
  }
}

Task<RunOutcome> JupyterKernel::run(std::string code, JupyterRun::Kind kind, EventSink* sink) {
  const bool silent = kind == JupyterRun::Kind::kSilent;
  JupyterMessage message;
  message.type = "execute_request";
  message.id = make_uuid();
  message.session = session_;
  message.content = {{"code", code},
                     {"silent", silent},
                     {"store_history", !silent},
                     {"user_expressions", boost::json::object()},
                     {"allow_stdin", false},
                     {"stop_on_error", true}};
  run_.emplace(message.id, kind, next_count_);
  user_code_runs_ = !silent;
  const auto begun = Clock::now();
  if (!co_await shell_->send(encode_jupyter_message(message, connection_->key()))) broken_ = true;
  while (!run_->finished(Clock::now())) {
    if (run_->has_event()) {
      co_await emit_waiting(sink);
      continue;
    }
    if (dead()) break;
    auto wake_at = Clock::now() + kAcceptTime;
    if (interrupt_wanted_ && !silent) {
      if (run_->accepted() || Clock::now() >= begun + kAcceptTime)
        deliver_interrupt();
      else
        wake_at = begun + kAcceptTime;
    }
    (void)co_await changed_.wait_until(wake_at);
  }
  const bool finished = run_->finished(Clock::now());
  if (!silent) {
    if (finished) run_->conclude();
    for (const auto& pipe : pipes_) {
      (void)pipe->collect();
      if (auto event = pipe->take_last()) {
        auto& output = std::get<StreamOutput>(*event);
        run_->print(output.name, std::move(output.text));
      }
    }
    co_await emit_waiting(sink);
    if (finished) next_count_ = run_->count() + 1;
  }
  user_code_runs_ = false;
  resume();
  run_.reset();
  changed_.notify_all();
  co_return finished ? RunOutcome::kDone : RunOutcome::kDied;
}

Task<RunOutcome> JupyterKernel::execute(Execution execution, EventSink& sink) {
  if (dead() || exit_->exited) co_return RunOutcome::kDied;
  // Kernels differ in whether they count it.
  if (trim(execution.code).empty()) {
    co_await sink.emit(RunStarted{.execution_count = next_count_});
    co_return RunOutcome::kDone;
  }
  executing_ = true;
  interrupt_wanted_ = false;
  interrupt_arrived_ = false;
  const bool sets = !execution.env_vars.empty() && equal_ignoring_case(spec_.language, "R");
  auto outcome = RunOutcome::kDone;
  if (sets) {
    outcome = co_await run(r_code_to_set(execution.env_vars), JupyterRun::Kind::kSilent, nullptr);
  }
  if (outcome == RunOutcome::kDone) {
    outcome = co_await run(std::move(execution.code), JupyterRun::Kind::kUser, &sink);
  }
  // An interrupt that comes from now on has nothing to stop.
  executing_ = false;
  if (sets && outcome == RunOutcome::kDone) {
    outcome = co_await run(r_code_to_restore(), JupyterRun::Kind::kSilent, nullptr);
  }
  co_return outcome;
}

Task<void> JupyterKernel::end() {
  ended_ = true;
  if (pid_ > 0 && !exit_->exited) kill_kernel(pid_);
  for (const Socket* socket : {&shell_, &published_, &control_, &input_}) {
    if (*socket) (*socket)->close();
  }
  changed_.notify_all();
  // Waited for by the reaper, which hears of it by a signal.
  constexpr milliseconds kLook{2};
  for (int i = 0; pid_ > 0 && !exit_->exited && i < 2500; ++i) co_await net::sleep_for(kLook);
  while (run_ || starting_) co_await changed_.wait_until(Clock::now() + kAcceptTime);
  co_await tasks_.stop();
  connection_.reset();
}

}  // namespace

Result<std::unique_ptr<Kernel>> make_jupyter_kernel(const boost::asio::any_io_executor& executor,
                                                    agent::ChildReaper& reaper,
                                                    std::string_view language, KernelSetup setup,
                                                    JupyterOptions options) {
  ALCOVE_TRY_ASSIGN(JupyterKernelSpec spec,
                    find_jupyter_kernel(jupyter_kernel_dirs(as_map(setup.environment)), language));
  return std::make_unique<JupyterKernel>(executor, reaper, std::move(spec), std::move(setup),
                                         std::move(options));
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/exec_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>

#include "base/strings.h"
#include "cli/agent_client.h"
#include "cli/exec_messages.h"
#include "cli/local_terminal.h"
#include "cli/printable.h"
#include "cli/remote_files.h"
#include "cli/run_command.h"
#include "cli/standard_io.h"
#include "connect/client.h"
#include "net/task_group.h"

namespace alcove::cli {
namespace {

namespace asio = boost::asio;

constexpr int kTimedOut = 124;
constexpr uint64_t kMaxMessage = 16u << 20;
// The agent is asked for a sign of life every 50 s; one that misses two is gone.
constexpr std::chrono::seconds kKeepalive{50};
constexpr std::chrono::seconds kSilence{130};
// How long a signal that ends us waits for the server, which may hang.
constexpr std::chrono::seconds kFarewell{3};

// A command that runs in a sandbox, and what goes in and out of it.
class Execution {
 public:
  Execution(AgentClient agent, const ExecOptions& options)
      : agent_(std::move(agent)), options_(options) {}

  Task<Result<int>> run();
  // Whether it came so far that there was a command.
  bool has_started() const { return pid_ != 0; }

 private:
  Input kind_of_input() const {
    if (options_.terminal) return Input::kTerminal;
    const bool open = ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
    const bool wanted = options_.interactive || !LocalTerminal::is_there();
    return open && wanted ? Input::kPipe : Input::kNone;
  }
  Task<Result<http::ClientConnection>> start();
  Result<void> take_up(Started started, net::TaskGroup& helpers);
  Task<Result<int>> read_events(http::ClientConnection& connection, net::TaskGroup& helpers);
  bool timeout_has_passed() const {
    return options_.timeout && std::chrono::steady_clock::now() - started_at_ >= *options_.timeout;
  }
  Task<Result<void>> put_out(Output output);
  // A line about how the command ended, where the terminal is in order again.
  void say(std::string_view text);
  Task<void> feed_input();
  Task<void> forward_signals(net::TaskGroup& helpers);
  // With a terminal, instead of forward_signals().
  Task<void> end_on_signal();
  Task<void> follow_terminal();
  Task<void> send_size();
  Task<void> send_signal(std::string_view name);

  AgentClient agent_;
  const ExecOptions& options_;
  StandardInput input_;
  StandardOutput output_;
  LocalTerminal terminal_;
  const Input input_kind_ = kind_of_input();
  // What the terminal inside has been told.
  TerminalSize size_ = LocalTerminal::size();
  // Why keys do not reach the terminal inside any more.
  std::optional<Error> input_error_;
  const std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
  // 0 until the command runs.
  uint32_t pid_ = 0;
  // The last signal that somebody sent to us.
  int interrupted_by_ = 0;
};

Task<Result<int>> Execution::run() {
  net::TaskGroup helpers(co_await asio::this_coro::executor);
  if (input_kind_ == Input::kTerminal) {
    helpers.spawn(end_on_signal());
    helpers.spawn(follow_terminal());
  } else {
    helpers.spawn(forward_signals(helpers));
  }
  auto connection = co_await start();
  Result<int> code =
      connection ? co_await read_events(*connection, helpers) : fail(std::move(connection).error());
  co_await helpers.stop();
  if (!code) terminal_.break_off();
  co_return code;
}

Task<Result<http::ClientConnection>> Execution::start() {
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await agent_.http().take());
  http::RequestHead head = agent_.call_head("process.Process/Start", "application/connect+json");
  head.headers.add("Keepalive-Ping-Interval", std::to_string(kKeepalive.count()));
  if (options_.timeout) {
    head.headers.add("Connect-Timeout-Ms", std::to_string(options_.timeout->count() * 1000));
  }
  std::string body;
  connect::append_envelope(body, start_message(options_, input_kind_, size_));
  connection.stream().set_read_deadline(std::chrono::steady_clock::now() + kRequestLimit);
  ALCOVE_CO_TRY(
      co_await connection.write_head(agent_.http().complete(std::move(head)), body.size(), body));
  ALCOVE_CO_TRY_ASSIGN(const http::ResponseHead answer, co_await connection.read_head("POST"));
  if (answer.status != 200) {
    ALCOVE_CO_TRY_ASSIGN(std::string text, co_await connection.body().read_all(kMaxMessage));
    co_return fail(call_error({.status = answer.status, .headers = {}, .body = std::move(text)}));
  }
  co_return connection;
}

Task<Result<int>> Execution::read_events(http::ClientConnection& connection,
                                         net::TaskGroup& helpers) {
  connect::StreamReader reader(connection.body(), kMaxMessage);
  for (;;) {
    connection.stream().set_read_deadline(std::chrono::steady_clock::now() + kSilence);
    auto message = co_await reader.next();
    if (!message && message.error().code() == Code::kDeadlineExceeded && timeout_has_passed()) {
      say("the command was killed: it ran longer than its --timeout");
      co_return kTimedOut;
    }
    if (!message) {
      co_return fail(Error(message.error().code(), printable(message.error().message())));
    }
    if (!*message) co_return fail(Code::kDataLoss, "the sandbox did not say how the command ended");
    ALCOVE_CO_TRY_ASSIGN(ProcessEvent event, parse_event(**message));
    if (const auto* started = std::get_if<Started>(&event); started != nullptr && pid_ == 0) {
      ALCOVE_CO_TRY(take_up(*started, helpers));
    } else if (auto* output = std::get_if<Output>(&event)) {
      auto written = co_await put_out(std::move(*output));
      if (!written) {
        // Nobody reads any more (`... | head`): the command would run on for nobody.
        co_await send_signal("SIGNAL_SIGKILL");
        if (written.error().error_number() == EPIPE) co_return 128 + SIGPIPE;
        co_return fail(std::move(written).error());
      }
    } else if (const auto* ended = std::get_if<Ended>(&event)) {
      if (interrupted_by_ != 0) co_return 128 + interrupted_by_;
      if (ended->by_signal && input_error_) {
        co_return fail(std::move(*input_error_).context("pass input to the sandbox"));
      }
      if (ended->by_signal) {
        say(cat("the command ended by a signal (", printable(ended->status), ")"));
      }
      co_return ended->exit_code;
    }
  }
}

Result<void> Execution::take_up(Started started, net::TaskGroup& helpers) {
  pid_ = started.pid;
  if (input_kind_ == Input::kNone) return {};
  if (input_kind_ == Input::kTerminal) {
    ALCOVE_TRY(terminal_.take());
    // It may have changed since the start was asked for.
    helpers.spawn(send_size());
  }
  helpers.spawn(feed_input());
  return {};
}

void Execution::say(std::string_view text) {
  terminal_.break_off();
  std::fputs(cat("alcove: ", text, "\n").c_str(), stderr);
}

Task<Result<void>> Execution::put_out(Output output) {
  using Target = StandardOutput::Target;
  const Target target = output.stream == Output::Stream::kOutput ? Target::kOutput : Target::kError;
  return output_.write(target, std::move(output.data));
}

Task<void> Execution::feed_input() {
  for (;;) {
    const auto data = co_await input_.read();
    if (!data || data->empty()) break;
    // A command that does not read holds this up for as long as it likes. One that has ended or
    // closed its input wants no more.
    const auto sent = co_await agent_.call("process.Process/SendInput",
                                           input_message(pid_, input_kind_, *data), {});
    if (sent) continue;
    if (input_kind_ != Input::kTerminal || sent.error().code() == Code::kNotFound) co_return;
    input_error_ = sent.error();
    break;
  }
  if (input_kind_ == Input::kTerminal) {
    // Nobody could say anything to the program any more.
    co_await send_signal("SIGNAL_SIGKILL");
    co_return;
  }
  (void)co_await agent_.call("process.Process/CloseStdin", selector_message(pid_));
}

Task<void> Execution::forward_signals(net::TaskGroup& helpers) {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM, SIGHUP);
  for (int count = 1;; ++count) {
    const auto [error, number] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    if (pid_ == 0 || count > 2) std::_Exit(128 + number);
    interrupted_by_ = number;
    // Not awaited: a server that hangs must not keep the next one from being seen.
    helpers.spawn(send_signal(count == 1 ? "SIGNAL_SIGTERM" : "SIGNAL_SIGKILL"));
  }
}

Task<void> Execution::end_on_signal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGINT, SIGTERM, SIGHUP);
  signals.add(SIGQUIT);
  const auto [error, number] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
  if (error) co_return;
  interrupted_by_ = number;
  terminal_.give_back();
  // Interactive shells ignore SIGTERM.
  if (pid_ != 0) {
    (void)co_await agent_.call("process.Process/SendSignal", signal_message(pid_, "SIGNAL_SIGKILL"),
                               kFarewell);
  }
  std::_Exit(128 + number);
}

Task<void> Execution::follow_terminal() {
  asio::signal_set signals(co_await asio::this_coro::executor, SIGWINCH, SIGTSTP, SIGCONT);
  for (;;) {
    const auto [error, number] = co_await signals.async_wait(asio::as_tuple(asio::use_awaitable));
    if (error) co_return;
    if (number == SIGTSTP) terminal_.stop_process();
    if (pid_ == 0) continue;
    // Whoever had the terminal meanwhile has set it as they like.
    if (number == SIGCONT) (void)terminal_.take();
    co_await send_size();
  }
}

Task<void> Execution::send_size() {
  const TerminalSize size = LocalTerminal::size();
  if (size == size_) co_return;
  size_ = size;
  // Without it the program draws for the old size, which is no reason to end it.
  (void)co_await agent_.call("process.Process/Update", resize_message(pid_, size));
}

Task<void> Execution::send_signal(std::string_view name) {
  const auto sent = co_await agent_.call("process.Process/SendSignal", signal_message(pid_, name));
  // A command that has just ended needs none.
  if (!sent && sent.error().code() != Code::kNotFound) {
    say(cat("the command could not be stopped: ", sent.error().message()));
  }
}

// What the official clients start, where the template has it.
Task<std::vector<std::string>> login_shell(AgentClient& agent) {
  RemoteFiles files(agent);
  const auto bash = co_await files.find("/bin/bash");
  const bool has_none = bash && !*bash;
  co_return std::vector<std::string>{has_none ? "/bin/sh" : "/bin/bash", "-i", "-l"};
}

Task<Result<int>> exec(Server& server, ExecOptions options) {
  ALCOVE_CO_TRY_ASSIGN(AgentClient agent,
                       co_await AgentClient::open(server, options.sandbox_id, options.user));
  if (options.command.empty()) options.command = co_await login_shell(agent);
  Execution execution(std::move(agent), options);
  auto code = co_await execution.run();
  if (code || !execution.has_started()) co_return code;
  // A sandbox that ends takes its connections with it, without a word.
  const auto sandbox = co_await server.call_sandbox("GET", options.sandbox_id, "");
  if (!sandbox && sandbox.error().code() == Code::kNotFound) {
    co_return fail(Code::kAborted, "the sandbox ended while the command ran");
  }
  co_return fail(std::move(code).error().context("the command's stream broke off"));
}

}  // namespace

Result<int> exec_in_sandbox(const ClientFlags& flags, const ExecOptions& options) {
  if (options.terminal && !LocalTerminal::is_there()) {
    return fail(Code::kFailedPrecondition,
                "standard input is no terminal, and a program in a terminal needs one; in scripts "
                "use `alcove sandbox exec ID -- COMMAND`");
  }
  // A closed output is seen by its error, so that the command can be stopped.
  std::signal(SIGPIPE, SIG_IGN);
  return with_server(flags, [&](Server& server) { return exec(server, options); });
}

}  // namespace alcove::cli

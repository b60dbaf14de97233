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
#include "cli/printable.h"
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

// A command that runs in a sandbox, and what goes in and out of it.
class Execution {
 public:
  Execution(AgentClient agent, const ExecOptions& options)
      : agent_(std::move(agent)), options_(options) {}

  Task<Result<int>> run();

 private:
  bool takes_input() const {
    const bool open = ::fcntl(STDIN_FILENO, F_GETFD) >= 0;
    return open && (options_.interactive || ::isatty(STDIN_FILENO) == 0);
  }
  Task<Result<http::ClientConnection>> start(Input input);
  Task<Result<int>> read_events(http::ClientConnection& connection, net::TaskGroup& helpers);
  bool timeout_has_passed() const {
    return options_.timeout && std::chrono::steady_clock::now() - started_at_ >= *options_.timeout;
  }
  Task<Result<void>> put_out(Output output);
  Task<void> feed_input();
  Task<void> forward_signals(net::TaskGroup& helpers);
  Task<void> send_signal(std::string_view name);

  AgentClient agent_;
  const ExecOptions& options_;
  StandardInput input_;
  StandardOutput output_;
  Input input_kind_ = Input::kNone;
  const std::chrono::steady_clock::time_point started_at_ = std::chrono::steady_clock::now();
  // 0 until the command runs.
  uint32_t pid_ = 0;
  // The last signal that somebody sent to us.
  int interrupted_by_ = 0;
};

Task<Result<int>> Execution::run() {
  net::TaskGroup helpers(co_await asio::this_coro::executor);
  helpers.spawn(forward_signals(helpers));
  input_kind_ = takes_input() ? Input::kPipe : Input::kNone;
  auto connection = co_await start(input_kind_);
  Result<int> code =
      connection ? co_await read_events(*connection, helpers) : fail(std::move(connection).error());
  co_await helpers.stop();
  co_return code;
}

Task<Result<http::ClientConnection>> Execution::start(Input input) {
  ALCOVE_CO_TRY_ASSIGN(http::ClientConnection connection, co_await agent_.http().take());
  http::RequestHead head = agent_.call_head("process.Process/Start", "application/connect+json");
  head.headers.add("Keepalive-Ping-Interval", std::to_string(kKeepalive.count()));
  if (options_.timeout) {
    head.headers.add("Connect-Timeout-Ms", std::to_string(options_.timeout->count() * 1000));
  }
  std::string body;
  connect::append_envelope(body, start_message(options_, input));
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
      std::fputs("alcove: the command was killed: it ran longer than its --timeout\n", stderr);
      co_return kTimedOut;
    }
    if (!message) {
      co_return fail(Error(message.error().code(), printable(message.error().message())));
    }
    if (!*message) co_return fail(Code::kDataLoss, "the sandbox did not say how the command ended");
    ALCOVE_CO_TRY_ASSIGN(ProcessEvent event, parse_event(**message));
    if (const auto* started = std::get_if<Started>(&event); started != nullptr && pid_ == 0) {
      pid_ = started->pid;
      if (input_kind_ == Input::kPipe) helpers.spawn(feed_input());
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
      if (ended->by_signal) {
        std::fprintf(stderr, "alcove: the command ended by a signal (%s)\n",
                     printable(ended->status).c_str());
      }
      co_return ended->exit_code;
    }
  }
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
    if (!co_await agent_.call("process.Process/SendInput", input_message(pid_, *data), {})) {
      co_return;
    }
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

Task<void> Execution::send_signal(std::string_view name) {
  const auto sent = co_await agent_.call("process.Process/SendSignal", signal_message(pid_, name));
  // A command that has just ended needs none.
  if (!sent && sent.error().code() != Code::kNotFound) {
    std::fprintf(stderr, "alcove: the command could not be stopped: %s\n",
                 sent.error().message().c_str());
  }
}

Task<Result<int>> exec(Server& server, const ExecOptions& options) {
  ALCOVE_CO_TRY_ASSIGN(AgentClient agent,
                       co_await AgentClient::open(server, options.sandbox_id, options.user));
  Execution execution(std::move(agent), options);
  co_return co_await execution.run();
}

}  // namespace

Result<int> exec_in_sandbox(const ClientFlags& flags, const ExecOptions& options) {
  // A closed output is seen by its error, so that the command can be stopped.
  std::signal(SIGPIPE, SIG_IGN);
  return with_server(flags, [&](Server& server) { return exec(server, options); });
}

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_input.h"

#include <chrono>
#include <string>
#include <utility>

#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/this_coro.hpp>

#include "connect/connect.h"
#include "net/notifier.h"
#include "net/task_group.h"

namespace alcove::agent {
namespace {

// A task that feeds a process, and what may end it early: its client's end, its deadline.
struct Race {
  explicit Race(const boost::asio::any_io_executor& executor) : changed(executor) {}

  std::optional<Result<void>> outcome;
  bool disconnected = false;
  net::Notifier changed;
};

Task<void> write_input(Race& race, Process& process, ProcessInput input,
                       std::optional<Process::TimePoint> deadline) {
  race.outcome = co_await process.write_input(input.kind, std::move(input.data), deadline);
  race.changed.notify_all();
}

Task<void> watch_client(Race& race, http::Exchange& exchange) {
  co_await exchange.wait_disconnect();
  race.disconnected = true;
  race.changed.notify_all();
}

Task<Result<void>> take_messages(http::Exchange& exchange, const connect::CallInfo& call,
                                 const ProcessTable& table) {
  connect::EnvelopeReader reader(exchange.body(), kMaxProcessMessage);
  std::shared_ptr<Process> process;
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(auto message, co_await reader.next());
    if (!message) co_return Result<void>();
    ALCOVE_CO_TRY_ASSIGN(StreamInputRequest request, decode_stream_input(call.codec, *message));
    if (request.start) {
      ALCOVE_CO_TRY_ASSIGN(process, table.find(*request.start));
    } else if (request.has_data) {
      if (!process) {
        co_return fail(Code::kInvalidArgument, "input came before the start message");
      }
      if (!request.input) co_return fail(Code::kUnimplemented, "the message has no input");
      ALCOVE_CO_TRY(
          co_await send_to_process(exchange, process, *std::move(request.input), call.deadline));
    }
  }
}

Task<void> take_stream(Race& race, http::Exchange& exchange, const connect::CallInfo& call,
                       const ProcessTable& table) {
  race.outcome = co_await take_messages(exchange, call, table);
  race.changed.notify_all();
}

}  // namespace

Task<Result<void>> send_to_process(http::Exchange& exchange, std::shared_ptr<Process> process,
                                   ProcessInput input, std::optional<Process::TimePoint> deadline) {
  namespace this_coro = boost::asio::this_coro;
  const auto executor = co_await this_coro::executor;
  // A cancelation must not end this task before its children, which use what is here.
  const bool throws = co_await this_coro::throw_if_cancelled();
  co_await this_coro::throw_if_cancelled(false);
  const auto state = co_await this_coro::cancellation_state;
  Race race(executor);
  net::TaskGroup group(executor);
  group.spawn(write_input(race, *process, std::move(input), deadline));
  group.spawn(watch_client(race, exchange));
  while (!race.outcome && !race.disconnected &&
         state.cancelled() == boost::asio::cancellation_type::none) {
    co_await race.changed.wait();
  }
  const Result<void> written = race.outcome.value_or(fail(Code::kCanceled, "the client is gone"));
  co_await group.stop();
  co_await this_coro::throw_if_cancelled(throws);
  co_return written;
}

Task<void> stream_to_process(http::Exchange& exchange, const ProcessTable& table) {
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kStream);
  if (!call) co_return;
  const auto executor = co_await boost::asio::this_coro::executor;
  Race race(executor);
  net::TaskGroup group(executor);
  group.spawn(take_stream(race, exchange, *call, table));
  const auto deadline = call->deadline.value_or(Process::TimePoint::max());
  while (!race.outcome && std::chrono::steady_clock::now() < deadline) {
    (void)co_await race.changed.wait_until(deadline);
  }
  // Before the task is stopped, which is an outcome of its own.
  const Result<void> taken = race.outcome.value_or(
      fail(Code::kDeadlineExceeded, "the deadline passed before the end of the input"));
  co_await group.stop();
  connect::StreamWriter writer(exchange, *call);
  if (!taken) {
    // The body may stay open for hours: the answer must not wait for its end.
    exchange.close_after();
    (void)co_await writer.finish(taken.error());
    co_return;
  }
  std::string answer;
  connect::append_envelope(answer, encode_empty(call->codec));
  (void)co_await writer.finish(std::nullopt, answer);
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_input.h"

#include <chrono>
#include <string>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "agent/client_wait.h"
#include "connect/connect.h"
#include "net/notifier.h"
#include "net/task_group.h"

namespace alcove::agent {
namespace {

// A task that takes messages, which the call's deadline may end early.
struct Race {
  explicit Race(const boost::asio::any_io_executor& executor) : changed(executor) {}

  std::optional<Result<void>> outcome;
  net::Notifier changed;
};

Task<Result<void>> take_messages(http::Exchange& exchange, const connect::CallInfo& call,
                                 const ProcessTable& table, InputMeter& meter) {
  MeteredBody body(exchange.body(), meter);
  connect::EnvelopeReader reader(body, kMaxProcessMessage);
  std::shared_ptr<Process> process;
  for (;;) {
    ALCOVE_CO_TRY_ASSIGN(auto message, co_await reader.next());
    if (!message) co_return Result<void>();
    ALCOVE_CO_TRY_ASSIGN(StreamInputRequest request, decode_stream_input(call.codec, *message));
    // While that waits for the process, nothing but the data is kept.
    message.reset();
    if (request.start) {
      ALCOVE_CO_TRY_ASSIGN(process, table.find(*request.start));
    } else if (request.has_data) {
      if (!process) {
        co_return fail(Code::kInvalidArgument, "input came before the start message");
      }
      if (!request.input) co_return fail(Code::kUnimplemented, "the message has no input");
      ALCOVE_CO_TRY(body.hold(request.input->data.size()));
      ALCOVE_CO_TRY(
          co_await send_to_process(exchange, process, *std::move(request.input), call.deadline));
    }
    // But for what the reader has of the next message.
    body.give_back();
  }
}

Task<void> take_stream(Race& race, http::Exchange& exchange, const connect::CallInfo& call,
                       const ProcessTable& table, InputMeter& meter) {
  race.outcome = co_await take_messages(exchange, call, table, meter);
  race.changed.notify_all();
}

}  // namespace

Task<Result<void>> send_to_process(http::Exchange& exchange, std::shared_ptr<Process> process,
                                   ProcessInput input, std::optional<Process::TimePoint> deadline) {
  // The deadline is the write's: it knows what was written by then.
  co_return co_await while_client_waits(
      exchange, /*deadline=*/{}, process->write_input(input.kind, std::move(input.data), deadline));
}

Task<void> stream_to_process(http::Exchange& exchange, const ProcessTable& table,
                             InputMeter& meter) {
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kStream);
  if (!call) co_return;
  const auto executor = co_await boost::asio::this_coro::executor;
  Race race(executor);
  net::TaskGroup group(executor);
  group.spawn(take_stream(race, exchange, *call, table, meter));
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

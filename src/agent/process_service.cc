// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_service.h"

#include <signal.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "agent/client_wait.h"
#include "agent/event_stream.h"
#include "agent/paths.h"
#include "agent/process_input.h"
#include "base/strings.h"
#include "connect/connect.h"

namespace alcove::agent {

namespace {

constexpr std::chrono::milliseconds kMostKillTime{500};

constexpr std::array<std::string_view, 5> kUnaryMethods = {"List", "SendInput", "CloseStdin",
                                                           "SendSignal", "Update"};

Task<void> fail_stream(http::Exchange& exchange, const connect::CallInfo& call, Error error) {
  connect::StreamWriter writer(exchange, call);
  (void)co_await writer.finish(std::move(error));
}

}  // namespace

Task<void> ProcessService::handle(http::Exchange& exchange, std::string_view method,
                                  std::optional<std::string> user) {
  if (method == "Start") {
    co_await start(exchange, std::move(user));
    co_return;
  }
  if (method == "Connect") {
    co_await connect_to(exchange);
    co_return;
  }
  if (method == "StreamInput") {
    co_await stream_to_process(exchange, table_, input_);
    co_return;
  }
  if (std::find(kUnaryMethods.begin(), kUnaryMethods.end(), method) == kUnaryMethods.end()) {
    co_await connect::refuse_unknown_method(exchange, "process.Process", method);
    co_return;
  }
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kUnary);
  if (!call) co_return;
  auto answer = method == "SendInput" ? co_await send_input(exchange, *call)
                                      : co_await call_small(exchange, *call, method);
  if (answer) {
    co_await connect::respond_unary(exchange, *call, *std::move(answer));
  } else {
    co_await connect::respond_error(exchange, *call, answer.error());
  }
}

Task<void> ProcessService::start(http::Exchange& exchange, std::optional<std::string> user) {
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kStream);
  if (!call) co_return;
  MeteredBody body(exchange.body(), input_);
  auto message = co_await connect::read_single(body, kMaxProcessMessage);
  if (!message) {
    co_await fail_stream(exchange, *call, std::move(message).error());
    co_return;
  }
  auto process = co_await start_process(exchange, *call, *std::move(message), std::move(user));
  // From here on it counts as the process's.
  body.give_back();
  if (!process) {
    co_await fail_stream(exchange, *call, std::move(process).error());
    co_return;
  }
  auto subscriber = (*process)->subscribe(call->codec);
  table_.run(*process);
  co_await stream_events(exchange, *call, *process, std::move(subscriber));
}

Task<Result<std::shared_ptr<Process>>> ProcessService::start_process(
    http::Exchange& exchange, connect::CallInfo call, std::string message,
    std::optional<std::string> user) {
  ALCOVE_CO_TRY_ASSIGN(StartRequest request, decode_start(call.codec, message));
  message.clear();
  message.shrink_to_fit();
  const auto wanted = std::make_shared<ProcessTable::Wanted>();
  SpawnSpec& spec = wanted->spec;
  ALCOVE_CO_TRY_ASSIGN(spec.user, users_.find(user ? *user : state_.default_user()));
  const PathBase base = state_.path_base(spec.user);
  ALCOVE_CO_TRY_ASSIGN(spec.directory, resolve_path(request.process.directory.value_or(""), base));
  spec.command = request.process.command;
  spec.arguments = request.process.arguments;
  spec.environment = state_.environment(spec.user, request.process.environment);
  spec.input = request.input;
  spec.terminal = request.terminal;
  wanted->config = std::move(request.process);
  wanted->tag = std::move(request.tag);
  wanted->deadline = call.deadline;
  ALCOVE_CO_TRY_ASSIGN(auto process, co_await table_.start_near(wanted));
  if (process) co_return process;
  co_return co_await while_client_waits(exchange, call.deadline, table_.start_anywhere(wanted));
}

Task<void> ProcessService::connect_to(http::Exchange& exchange) {
  const auto call = co_await connect::accept_call(exchange, connect::CallKind::kStream);
  if (!call) co_return;
  const auto message = co_await connect::read_single(exchange, kMaxSmallMessage);
  if (!message) {
    co_await fail_stream(exchange, *call, message.error());
    co_return;
  }
  const auto selector = decode_selector(call->codec, *message);
  if (!selector) {
    co_await fail_stream(exchange, *call, selector.error());
    co_return;
  }
  if (const auto process = table_.find(*selector)) {
    auto subscriber = (*process)->subscribe(call->codec);
    co_await stream_events(exchange, *call, *process, std::move(subscriber));
  } else if (auto ended = table_.find_ended(*selector)) {
    co_await stream_ended(exchange, *call, *std::move(ended));
  } else {
    co_await fail_stream(exchange, *call, process.error());
  }
}

Task<Result<std::string>> ProcessService::send_input(http::Exchange& exchange,
                                                     connect::CallInfo call) {
  MeteredBody body(exchange.body(), input_);
  ALCOVE_CO_TRY_ASSIGN(std::string message,
                       co_await connect::read_unary(exchange.request(), body, kMaxProcessMessage));
  // It may have come compressed.
  ALCOVE_CO_TRY(body.hold(message.size()));
  ALCOVE_CO_TRY_ASSIGN(SendInputRequest request, decode_send_input(call.codec, message));
  ALCOVE_CO_TRY_ASSIGN(const auto process, table_.find(request.process));
  if (!request.input) co_return fail(Code::kUnimplemented, "the request has no input");
  // While that waits for the process, nothing but the data is kept.
  message.clear();
  message.shrink_to_fit();
  ALCOVE_CO_TRY(body.hold(request.input->data.size()));
  ALCOVE_CO_TRY(
      co_await send_to_process(exchange, process, *std::move(request.input), call.deadline));
  co_return encode_empty(call.codec);
}

// However much input waits: a process that does not read its own can be found and killed.
Task<Result<std::string>> ProcessService::call_small(http::Exchange& exchange,
                                                     connect::CallInfo call,
                                                     std::string_view method) {
  ALCOVE_CO_TRY_ASSIGN(std::string message,
                       co_await connect::read_unary(exchange, kMaxSmallMessage));
  if (method == "List") co_return encode_process_list(call.codec, table_.list());
  if (method == "CloseStdin") co_return close_stdin(call.codec, message);
  if (method == "SendSignal") co_return co_await send_signal(call, std::move(message));
  co_return update(call.codec, message);
}

Result<std::string> ProcessService::close_stdin(connect::Codec codec, std::string_view message) {
  ALCOVE_TRY_ASSIGN(const ProcessSelector selector, decode_selector(codec, message));
  ALCOVE_TRY_ASSIGN(const auto process, table_.find(selector));
  ALCOVE_TRY(process->close_input());
  return encode_empty(codec);
}

Task<Result<std::string>> ProcessService::send_signal(connect::CallInfo call, std::string message) {
  ALCOVE_CO_TRY_ASSIGN(const SendSignalRequest request, decode_send_signal(call.codec, message));
  if (request.signal != SIGKILL && request.signal != SIGTERM) {
    co_return fail(Code::kUnimplemented, "only SIGNAL_SIGKILL and SIGNAL_SIGTERM can be sent");
  }
  ALCOVE_CO_TRY_ASSIGN(const auto process, table_.find(request.process));
  ALCOVE_CO_TRY(process->signal(request.signal));
  // Clients expect that a command they start now finds it dead. It takes a moment; longer only for
  // a process that the kernel cannot end, and that must not hold up the answer.
  if (request.signal == SIGKILL) {
    co_await process->wait_until_gone(std::chrono::steady_clock::now() + kMostKillTime);
  }
  co_return encode_empty(call.codec);
}

Result<std::string> ProcessService::update(connect::Codec codec, std::string_view message) {
  ALCOVE_TRY_ASSIGN(const UpdateRequest request, decode_update(codec, message));
  ALCOVE_TRY_ASSIGN(const auto process, table_.find(request.process));
  if (request.terminal) ALCOVE_TRY(process->resize(*request.terminal));
  return encode_empty(codec);
}

}  // namespace alcove::agent

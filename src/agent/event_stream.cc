// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/event_stream.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include <boost/asio/this_coro.hpp>

#include "net/task_group.h"

namespace alcove::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

bool deadline_passed(const connect::CallInfo& call) {
  return call.deadline && SteadyClock::now() >= *call.deadline;
}

Error deadline_error() { return Error(Code::kDeadlineExceeded, "the deadline has passed"); }

Task<void> watch_client(http::Exchange& exchange, std::shared_ptr<Subscriber> subscriber) {
  co_await exchange.wait_disconnect();
  subscriber->disconnected = true;
  subscriber->wake.notify_all();
}

// Until the end of the stream was sent or cannot be sent any more.
Task<void> send_events(connect::StreamWriter& writer, const connect::CallInfo& call,
                       Process& process, Subscriber& subscriber) {
  std::string batch;
  append_start_event(call.codec, process.info().pid, batch);
  if (!co_await writer.send_framed(batch)) co_return;
  auto quiet_since = SteadyClock::now();
  for (;;) {
    if (subscriber.disconnected) co_return;
    // Before the end event: a process that its deadline killed is a timeout to the client, not a
    // command that failed.
    if (deadline_passed(call)) {
      (void)co_await writer.finish(deadline_error());
      co_return;
    }
    if (!subscriber.pending.empty() || subscriber.end) {
      batch.clear();
      std::swap(batch, subscriber.pending);
      process.taken();
      if (subscriber.end) {
        append_end_event(call.codec, *subscriber.end, batch);
        (void)co_await writer.finish(std::nullopt, batch);
        co_return;
      }
      if (!co_await writer.send_framed(batch)) co_return;
      quiet_since = SteadyClock::now();
      continue;
    }
    auto wake_at = quiet_since + call.keepalive;
    if (call.deadline) wake_at = std::min(wake_at, *call.deadline);
    if (co_await subscriber.wake.wait_until(wake_at) || deadline_passed(call)) continue;
    if (SteadyClock::now() < quiet_since + call.keepalive) continue;
    batch.clear();
    append_keepalive_event(call.codec, batch);
    if (!co_await writer.send_framed(batch)) co_return;
    quiet_since = SteadyClock::now();
  }
}

}  // namespace

Task<void> stream_events(http::Exchange& exchange, connect::CallInfo call,
                         std::shared_ptr<Process> process, std::shared_ptr<Subscriber> subscriber) {
  net::TaskGroup group(co_await boost::asio::this_coro::executor);
  group.spawn(watch_client(exchange, subscriber));
  connect::StreamWriter writer(exchange, call);
  co_await send_events(writer, call, *process, *subscriber);
  process->unsubscribe(subscriber);
  co_await group.stop();
}

Task<void> stream_ended(http::Exchange& exchange, connect::CallInfo call,
                        ProcessTable::Ended ended) {
  connect::StreamWriter writer(exchange, call);
  std::string events;
  append_start_event(call.codec, ended.pid, events);
  append_end_event(call.codec, ended.end, events);
  (void)co_await writer.finish(std::nullopt, events);
}

}  // namespace alcove::agent

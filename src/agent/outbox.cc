// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/outbox.h"

#include <algorithm>
#include <chrono>

#include <boost/asio/this_coro.hpp>

#include "net/task_group.h"

namespace alcove::agent {
namespace {

using SteadyClock = std::chrono::steady_clock;

// A stream that is silent for so long is no longer in a burst.
constexpr std::chrono::milliseconds kBusy{200};

bool deadline_passed(const connect::CallInfo& call) {
  return call.deadline && SteadyClock::now() >= *call.deadline;
}

Error deadline_error() { return Error(Code::kDeadlineExceeded, "the deadline has passed"); }

Task<void> watch_client(http::Exchange& exchange, std::shared_ptr<Outbox> outbox) {
  co_await exchange.wait_disconnect();
  outbox->disconnected = true;
  outbox->wake.notify_all();
}

// Until the end of the stream was sent or cannot be sent any more.
Task<void> send_all(connect::StreamWriter& writer, const connect::CallInfo& call, Outbox& outbox,
                    const OutboxOptions& options) {
  std::string batch;
  auto quiet_since = SteadyClock::now();
  for (;;) {
    if (outbox.disconnected) co_return;
    // Before what is pending: a process that its deadline killed is a timeout to the client, not a
    // command that failed.
    if (deadline_passed(call)) {
      (void)co_await writer.finish(deadline_error());
      co_return;
    }
    if (!outbox.pending.empty() || outbox.over) {
      outbox.take(batch);
      options.taken();
      if (outbox.over) {
        (void)co_await writer.finish(outbox.failure, batch);
        co_return;
      }
      if (!co_await writer.send_framed(batch)) co_return;
      outbox.sent();
      quiet_since = SteadyClock::now();
      continue;
    }
    const bool keeps_much = outbox.keeps_much(batch);
    auto wake_at = quiet_since + call.keepalive;
    if (keeps_much) wake_at = std::min(wake_at, quiet_since + kBusy);
    if (call.deadline) wake_at = std::min(wake_at, *call.deadline);
    if (co_await outbox.wake.wait_until(wake_at) || deadline_passed(call)) continue;
    if (keeps_much) outbox.release(batch);
    if (SteadyClock::now() < quiet_since + call.keepalive) continue;
    batch.clear();
    options.append_keepalive(call.codec, batch);
    if (!co_await writer.send_framed(batch)) co_return;
    quiet_since = SteadyClock::now();
  }
}

}  // namespace

Task<void> send_outbox(http::Exchange& exchange, connect::CallInfo call,
                       std::shared_ptr<Outbox> outbox, OutboxOptions options) {
  net::TaskGroup group(co_await boost::asio::this_coro::executor);
  group.spawn(watch_client(exchange, outbox));
  connect::StreamWriter writer(exchange, call);
  co_await send_all(writer, call, *outbox, options);
  co_await group.stop();
}

}  // namespace alcove::agent

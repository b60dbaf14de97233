// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/event_stream.h"

#include <string>
#include <utility>

namespace alcove::agent {

Task<void> stream_events(http::Exchange& exchange, connect::CallInfo call,
                         std::shared_ptr<Process> process, std::shared_ptr<Outbox> subscriber) {
  co_await send_outbox(
      exchange, call, subscriber,
      {.append_keepalive = append_keepalive_event, .taken = [process] { process->taken(); }});
  process->unsubscribe(subscriber);
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

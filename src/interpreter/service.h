// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "http/exchange.h"
#include "interpreter/context_table.h"

namespace alcove::interpreter {

// The HTTP routes of port 49999 (protocol/code-interpreter.md 1.4). Belongs to one loop.
class Service {
 public:
  Service(const boost::asio::any_io_executor& executor, ContextTable& contexts)
      : executor_(executor), contexts_(contexts) {}

  Task<void> handle(http::Exchange& exchange);

 private:
  Task<void> route(http::Exchange& exchange);
  Task<void> execute(http::Exchange& exchange);
  Task<void> create_context(http::Exchange& exchange);
  Task<void> list_contexts(http::Exchange& exchange);
  Task<void> restart_context(http::Exchange& exchange, std::string id);
  Task<void> remove_context(http::Exchange& exchange, std::string id);
  // Sends the stream's lines until its end or the client's.
  Task<void> send_lines(http::Exchange& exchange, RunStream& stream);

  boost::asio::any_io_executor executor_;
  ContextTable& contexts_;
};

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/agent_state.h"
#include "agent/input_meter.h"
#include "agent/process_table.h"
#include "agent/users.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// The RPCs of process.Process on top of the process table. Belongs to the loop; everything it is
// given outlives it.
class ProcessService {
 public:
  ProcessService(AgentState& state, UserDatabase& users, ProcessTable& table)
      : state_(state), users_(users), table_(table) {}

  // Serves /process.Process/<method>. `user` is the name in the request's Authorization, already
  // known to exist.
  Task<void> handle(http::Exchange& exchange, std::string_view method,
                    std::optional<std::string> user);

 private:
  Task<void> start(http::Exchange& exchange, std::optional<std::string> user);
  Task<Result<std::shared_ptr<Process>>> start_process(http::Exchange& exchange,
                                                       connect::CallInfo call, std::string message,
                                                       std::optional<std::string> user);
  Task<void> connect_to(http::Exchange& exchange);

  Task<Result<std::string>> send_input(http::Exchange& exchange, connect::CallInfo call);
  // Any other unary method.
  Task<Result<std::string>> call_small(http::Exchange& exchange, connect::CallInfo call,
                                       std::string_view method);
  Result<std::string> close_stdin(connect::Codec codec, std::string_view message);
  Task<Result<std::string>> send_signal(connect::CallInfo call, std::string message);
  Result<std::string> update(connect::Codec codec, std::string_view message);

  AgentState& state_;
  UserDatabase& users_;
  ProcessTable& table_;
  InputMeter input_;
};

}  // namespace alcove::agent

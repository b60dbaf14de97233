// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "agent/agent_state.h"
#include "agent/users.h"
#include "connect/connect.h"
#include "http/exchange.h"
#include "net/blocking_pool.h"
#include "net/task.h"

namespace alcove::agent {

// The RPCs of filesystem.Filesystem. Every call that touches a file system runs on the pool, so
// that one that hangs stops nobody else. Belongs to the loop; what it is given outlives it.
class FilesystemService {
 public:
  FilesystemService(AgentState& state, UserDatabase& users, net::BlockingPool& pool)
      : state_(state), users_(users), pool_(pool) {}

  // Serves /filesystem.Filesystem/<method>. `user` is the name in the request's Authorization,
  // already known to exist.
  Task<void> handle(http::Exchange& exchange, std::string_view method,
                    std::optional<std::string> user);

 private:
  Task<Result<std::string>> call_method(connect::Codec codec, std::string_view method,
                                        std::string message, std::optional<std::string> user);

  AgentState& state_;
  UserDatabase& users_;
  net::BlockingPool& pool_;
};

}  // namespace alcove::agent

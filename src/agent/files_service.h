// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>

#include "agent/access.h"
#include "agent/agent_state.h"
#include "agent/file_pools.h"
#include "agent/files_query.h"
#include "agent/users.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// GET and POST /files, POST /files/compose. Everything that touches a file system runs on a thread.
// Belongs to the loop; what it is given outlives it.
class FilesService {
 public:
  FilesService(AgentState& state, UserDatabase& users, FilePools& pools)
      : state_(state), users_(users), pools_(pools) {}

  Task<void> download(http::Exchange& exchange);
  Task<void> upload(http::Exchange& exchange);
  Task<void> compose(http::Exchange& exchange);

 private:
  // After the checks that both directions share; else it has answered already.
  Task<std::optional<FilesQuery>> authorize(http::Exchange& exchange, FileOperation operation);
  Task<std::optional<User>> find_user(http::Exchange& exchange,
                                      const std::optional<std::string>& username);

  AgentState& state_;
  UserDatabase& users_;
  FilePools& pools_;
};

}  // namespace alcove::agent

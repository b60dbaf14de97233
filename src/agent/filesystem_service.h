// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>

#include "agent/agent_state.h"
#include "agent/file_pools.h"
#include "agent/users.h"
#include "agent/watch_service.h"
#include "connect/connect.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// The RPCs of filesystem.Filesystem. Every call that touches a file system runs on a thread, so
// that one that hangs stops nobody else. Belongs to the loop; what it is given outlives it.
class FilesystemService {
 public:
  FilesystemService(const boost::asio::any_io_executor& executor, AgentState& state,
                    UserDatabase& users, FilePools& pools)
      : state_(state), users_(users), pools_(pools), watchers_(executor, pools) {}

  // Serves /filesystem.Filesystem/<method>. `user` is the name in the request's Authorization,
  // already known to exist.
  Task<void> handle(http::Exchange& exchange, std::string_view method,
                    std::optional<std::string> user);

 private:
  // One of kFileMethods.
  Task<Result<std::string>> call_file_method(http::Exchange& exchange, connect::CallInfo call,
                                             std::string_view method, std::string message,
                                             std::optional<std::string> user);
  Task<Result<std::string>> list(http::Exchange& exchange, connect::CallInfo call, std::string path,
                                 uint32_t depth);
  Task<void> watch(http::Exchange& exchange, std::optional<std::string> user);
  // The request with its path resolved for the user.
  Result<WatchRequest> read_watch(connect::Codec codec, std::string_view message,
                                  const std::optional<std::string>& user);
  // One of kWatcherMethods.
  Task<Result<std::string>> call_watcher(connect::Codec codec, std::string_view method,
                                         std::string message, std::optional<std::string> user);

  AgentState& state_;
  UserDatabase& users_;
  FilePools& pools_;
  PolledWatchers watchers_;
};

}  // namespace alcove::agent

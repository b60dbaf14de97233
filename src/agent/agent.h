// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/agent_state.h"
#include "agent/companion.h"
#include "agent/file_pools.h"
#include "agent/files_service.h"
#include "agent/filesystem_service.h"
#include "agent/memory_saver.h"
#include "agent/metrics.h"
#include "agent/process_service.h"
#include "agent/process_table.h"
#include "agent/reaper.h"
#include "agent/users.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "http/exchange.h"
#include "http/server.h"
#include "net/task.h"

namespace alcove::agent {

struct AgentOptions {
  // Where the sandbox's identity is written.
  std::string identity_directory = "/run/e2b";
  // PATH of the processes.
  std::string path_variable = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
};

// The whole daemon on one loop: who may call, and which service answers. SIGCHLD must be blocked in
// all threads of the process.
class Agent {
 public:
  static Result<std::unique_ptr<Agent>> create(boost::asio::io_context& loop, AgentOptions options);

  // The sandbox has a code interpreter: this program, which serves the socket. It starts with the
  // first /init, because its kernels inherit the sandbox's variables.
  void keep_interpreter(std::string program, UniqueFd listener);

  // Serves HTTP on a listening socket.
  Result<void> serve(UniqueFd listener) { return server_.serve(std::move(listener)); }

 private:
  Agent(boost::asio::io_context& loop, AgentOptions options, std::unique_ptr<ChildReaper> reaper);

  // CORS, access token and Basic user, in this order, then the route.
  Task<void> handle(http::Exchange& exchange);
  Task<void> route(http::Exchange& exchange, std::optional<std::string> user);
  Task<void> init(http::Exchange& exchange);
  Task<void> envs(http::Exchange& exchange);
  // Only for the host.
  Task<void> journal(http::Exchange& exchange);

  std::unique_ptr<ChildReaper> reaper_;
  // Apart, so that a file system that hangs does not keep commands from starting.
  FilePools file_pools_;
  SpawnPools spawn_pools_;
  AgentState state_;
  UserDatabase users_;
  ProcessTable processes_;
  ProcessService process_service_;
  FilesystemService filesystem_service_;
  FilesService files_service_;
  MetricsSource metrics_;
  MemorySaver memory_saver_;
  std::optional<Companion> interpreter_;
  http::Server server_;
  boost::asio::io_context& loop_;
};

}  // namespace alcove::agent

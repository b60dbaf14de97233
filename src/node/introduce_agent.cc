// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/introduce_agent.h"

#include <chrono>
#include <optional>
#include <utility>

#include "http/client_connection.h"
#include "net/tcp_stream.h"

namespace alcove::node {
namespace {

// A fresh agent answers within a millisecond; on a machine under heavy load within a few seconds.
constexpr std::chrono::seconds kPatience{20};
constexpr uint16_t kAgentPort = 49983;

}  // namespace

Task<Result<void>> introduce_agent(sandbox::Machine& machine, agent::InitRequest request) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd socket, machine.connect(kAgentPort, sandbox::Machine::Family::kV4));
  ALCOVE_CO_TRY_ASSIGN(auto stream, co_await net::finish_connect(std::move(socket), kPatience));
  http::ClientConnection connection(std::move(stream));
  // The first introduction fixes the control token; there is none to present yet.
  co_return co_await agent::initialize(connection, std::move(request), std::nullopt, kPatience);
}

}  // namespace alcove::node

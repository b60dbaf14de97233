// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/client_connection.h"

namespace alcove::gateway {

// What becomes of a request that meets a dead connection.
enum class IfDead { kRepeated, kLost };

// Where a connection leads inside its sandbox.
struct Destination {
  uint16_t port = 0;
  // The name that the service was asked for by TLS; nothing for a connection without.
  std::optional<std::string> tls_name = {};

  bool operator==(const Destination&) const = default;
};

// How many idle connections all pools of one loop hold together.
struct IdleBudget {
  size_t used = 0;
  size_t most = 2048;
};

// Kept-alive connections into one sandbox, of one loop. Never shared between sandboxes: each
// sandbox has its own pool, which dies with it.
class UpstreamPool {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // The agent keeps idle connections for 640 s. A short time is enough to spare a burst of
  // commands the connect, and leaves the agent alone afterwards.
  static constexpr std::chrono::seconds kAgentIdle{30};
  // Common servers close after 5 s.
  static constexpr std::chrono::seconds kServiceIdle{3};
  static constexpr std::chrono::milliseconds kSurelyAlive{500};
  // Of one sandbox. A busy web service has many more requests at a time than an agent.
  static constexpr size_t kMostIdle = 256;
  static constexpr size_t kMostIdleAgent = 64;

  explicit UpstreamPool(std::shared_ptr<IdleBudget> budget) : budget_(std::move(budget)) {}
  ~UpstreamPool() { clear(); }
  UpstreamPool(const UpstreamPool&) = delete;
  UpstreamPool& operator=(const UpstreamPool&) = delete;

  // The connection to that place used last, if one is left on which nothing has come since. One
  // with TLS cannot be looked at: it is for requests that can be repeated, for a moment.
  std::optional<http::ClientConnection> take(const Destination& to, IfDead if_dead, TimePoint now);
  void put(const Destination& to, http::ClientConnection connection, TimePoint now);
  void drop_expired(TimePoint now);
  void clear();
  bool empty() const { return idle_.empty(); }

 private:
  static std::chrono::seconds keep_time(uint16_t port);

  struct Idle {
    Destination to;
    TimePoint since;
    http::ClientConnection connection;
  };

  std::shared_ptr<IdleBudget> budget_;
  // In the order they came back.
  std::vector<Idle> idle_;
};

}  // namespace alcove::gateway

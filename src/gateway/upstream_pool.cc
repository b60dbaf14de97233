// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/upstream_pool.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "gateway/routing.h"

namespace alcove::gateway {
namespace {

// Nothing may arrive on an idle connection: an end means that it is not usable, and data would be
// taken for the answer to somebody's request.
bool is_quiet(int socket) {
  char byte;
  const ssize_t got = ::recv(socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

}  // namespace

std::chrono::seconds UpstreamPool::keep_time(uint16_t port) {
  return port == kAgentPort ? kAgentIdle : kServiceIdle;
}

std::optional<http::ClientConnection> UpstreamPool::take(const Destination& to, IfDead if_dead,
                                                         TimePoint now) {
  for (size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i].to != to) continue;
    const auto age = now - idle_[i].since;
    http::ClientConnection connection = std::move(idle_[i].connection);
    idle_.erase(idle_.begin() + static_cast<std::ptrdiff_t>(i));
    --budget_->used;
    if (age >= keep_time(to.port)) continue;
    const int socket = connection.stream().native_fd();
    const bool trusted = if_dead == IfDead::kRepeated && age < kSurelyAlive;
    if (socket >= 0 ? is_quiet(socket) : trusted) return connection;
  }
  return {};
}

void UpstreamPool::put(const Destination& to, http::ClientConnection connection, TimePoint now) {
  const size_t most = to.port == kAgentPort ? kMostIdleAgent : kMostIdle;
  if (idle_.size() >= most || budget_->used >= budget_->most) return;
  ++budget_->used;
  idle_.push_back({.to = to, .since = now, .connection = std::move(connection)});
}

void UpstreamPool::drop_expired(TimePoint now) {
  const size_t before = idle_.size();
  std::erase_if(idle_,
                [now](const Idle& idle) { return now - idle.since >= keep_time(idle.to.port); });
  budget_->used -= before - idle_.size();
}

void UpstreamPool::clear() {
  budget_->used -= idle_.size();
  idle_.clear();
}

}  // namespace alcove::gateway

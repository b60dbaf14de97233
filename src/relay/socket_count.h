// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

namespace alcove::relay {

// How many sockets are open, of the relay or of one sandbox, and how many may be.
struct SocketCount {
  size_t used = 0;
  size_t most = 0;
};

// Sockets that count as long as this lives. Both counts outlive it.
class SocketLease {
 public:
  // Nothing if there is no room. A sandbox gets at most half of what is left, so that greedy ones
  // never take all from the others.
  static std::optional<SocketLease> take(SocketCount& all, SocketCount& own, size_t sockets) {
    const size_t left = all.most > all.used ? all.most - all.used : 0;
    if (own.used + sockets > std::min(own.most, left / 2)) return {};
    return SocketLease(all, own, sockets);
  }
  SocketLease(SocketLease&& other) noexcept
      : all_(other.all_), own_(other.own_), sockets_(std::exchange(other.sockets_, 0)) {}
  SocketLease& operator=(SocketLease&&) = delete;
  ~SocketLease() {
    all_.used -= sockets_;
    own_.used -= sockets_;
  }

 private:
  SocketLease(SocketCount& all, SocketCount& own, size_t sockets)
      : all_(all), own_(own), sockets_(sockets) {
    all_.used += sockets;
    own_.used += sockets;
  }

  SocketCount& all_;
  SocketCount& own_;
  size_t sockets_;
};

}  // namespace alcove::relay

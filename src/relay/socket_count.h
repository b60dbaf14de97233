// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <utility>

namespace alcove::relay {

// How many sockets are open, of the relay or of one sandbox, and how many may be.
struct SocketCount {
  size_t used = 0;
  size_t most = 0;
};

// Sockets that count as long as this lives. It keeps the sandbox's count, because what holds a
// lease may be the last that knows the sandbox; the relay's outlives it.
class SocketLease {
 public:
  // Nothing if there is no room. A sandbox gets at most half of what is left, so that greedy ones
  // never take all from the others.
  static std::optional<SocketLease> take(SocketCount& all, std::shared_ptr<SocketCount> own,
                                         size_t sockets) {
    const size_t left = all.most > all.used ? all.most - all.used : 0;
    if (own->used + sockets > std::min(own->most, left / 2)) return {};
    return SocketLease(all, std::move(own), sockets);
  }
  SocketLease(SocketLease&&) noexcept = default;
  SocketLease& operator=(SocketLease&&) = delete;
  ~SocketLease() {
    if (!own_) return;
    all_.used -= sockets_;
    own_->used -= sockets_;
  }

 private:
  SocketLease(SocketCount& all, std::shared_ptr<SocketCount> own, size_t sockets)
      : all_(all), own_(std::move(own)), sockets_(sockets) {
    all_.used += sockets;
    own_->used += sockets;
  }

  SocketCount& all_;
  std::shared_ptr<SocketCount> own_;  // empty: moved from
  const size_t sockets_;
};

}  // namespace alcove::relay

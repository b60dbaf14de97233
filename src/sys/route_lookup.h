// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <netinet/in.h>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::sys {

// Asks the kernel where packets to an address would go from the network namespace in which this
// was opened. Each answer is fresh.
class RouteLookup {
 public:
  static Result<RouteLookup> open();

  enum class Way {
    kOut,          // to another machine
    kOwn,          // to this one: a local, broadcast, anycast or multicast address
    kUnreachable,  // nowhere
  };
  Way find(in_addr address) { return find(AF_INET, &address, sizeof address); }
  Way find(const in6_addr& address) { return find(AF_INET6, &address, sizeof address); }

 private:
  explicit RouteLookup(UniqueFd socket) : socket_(std::move(socket)) {}
  Way find(unsigned char family, const void* address, size_t size);

  UniqueFd socket_;
};

}  // namespace alcove::sys

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>

namespace alcove::network {

// What every sandbox's network namespace looks like from inside. The namespaces are separate, so
// all have the same addresses.
inline constexpr const char* kGuestIpv4 = "10.11.12.2";
inline constexpr const char* kGuestIpv6 = "fd00:11::2";

// The name server in a sandbox's /etc/resolv.conf; the relay leads it to the host's resolvers.
inline constexpr const char* kGuestNameServer = "8.8.8.8";

// Where the relay listens inside the namespace, for TCP and UDP. A sandbox cannot use it.
inline constexpr uint16_t kRelayPort = 49982;

// First packets of TCP connections wait in this queue for the relay's verdict.
inline constexpr uint16_t kDialQueue = 0;

// What the relay writes on the first packet of a connection that failed; the rules then answer it
// as a real network would.
enum class DialMark : uint32_t { kNone = 0, kRefused = 1, kUnreachable = 2 };

// nfnetlink messages that put the rules into a new network namespace.
struct RuleSet {
  std::string batch;
  // Whether it asks the relay before a connection is made. Without, every connect succeeds at
  // first; a program would then stay with an IPv6 address that leads nowhere, so IPv6 is left out.
  bool asks_first = false;
};

}  // namespace alcove::network

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/egress_policy.h"

#include <algorithm>
#include <iterator>

namespace alcove::network {
namespace {

struct Range4 {
  uint32_t first;
  int bits;
};

// The documentation ranges (192.0.2/24, 198.51.100/24, 203.0.113/24) are not here: nobody lives
// there, and tests use them as the internet.
constexpr Range4 kNotPublic4[] = {
    {0x00000000, 8},   // this network
    {0x0a000000, 8},   // private
    {0x64400000, 10},  // shared by carriers
    {0x7f000000, 8},   // loopback
    {0xa83f8110, 32},  // Azure's metadata, in a public range
    {0xa9fe0000, 16},  // link-local, cloud metadata
    {0xac100000, 12},  // private
    {0xc0000000, 24},  // protocol assignments
    {0xc0586300, 24},  // 6to4's relays: whoever is one leads to IPv6
    {0xc0a80000, 16},  // private
    {0xc6120000, 15},  // benchmarks
    {0xe0000000, 4},   // multicast
    {0xf0000000, 4},   // reserved, broadcast
};

bool is_public4(uint32_t address) {
  return std::ranges::none_of(kNotPublic4, [&](const Range4& range) {
    return (address ^ range.first) >> (32 - range.bits) == 0;
  });
}

bool starts_with(const IpAddress& address, std::initializer_list<uint8_t> prefix) {
  return std::equal(prefix.begin(), prefix.end(), address.bytes().begin());
}

IpAddress last_four_bytes(const IpAddress& address) { return IpAddress(address.to_in_addr()); }

}  // namespace

std::string_view to_text(const EgressPolicy& policy) {
  return policy.reach == EgressPolicy::Reach::kInternet ? "internet" : "none";
}

std::optional<EgressPolicy> parse_egress_policy(std::string_view text) {
  if (text == "internet") return EgressPolicy{EgressPolicy::Reach::kInternet};
  if (text == "none") return EgressPolicy{EgressPolicy::Reach::kNone};
  return {};
}

std::optional<IpAddress> reached_by(const IpAddress& address) {
  if (address.is_v4()) return address;
  // NAT64's well-known prefix: a translator on the way turns it into the IPv4 address.
  if (starts_with(address, {0x00, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0})) {
    return last_four_bytes(address);
  }
  // Tunnels that carry an IPv4 address in ways of their own: 6to4, Teredo.
  if (starts_with(address, {0x20, 0x02})) return {};
  if (starts_with(address, {0x20, 0x01, 0x00, 0x00})) return {};
  return address;
}

bool is_public(const IpAddress& address) {
  const auto reached = reached_by(address);
  if (!reached) return false;
  if (reached->is_v4()) return is_public4(reached->v4());
  // Benchmarks; identifiers that are no addresses (ORCHID, both versions).
  if (starts_with(*reached, {0x20, 0x01, 0x00, 0x02, 0x00, 0x00})) return false;
  if (starts_with(*reached, {0x20, 0x01, 0x00}) &&
      ((reached->bytes()[3] & 0xf0) == 0x10 || (reached->bytes()[3] & 0xf0) == 0x20)) {
    return false;
  }
  // Global unicast is 2000::/3. The rest is loopback, unique local, link-local, site-local,
  // multicast, IPv4-compatible, local translators, or not assigned.
  return (reached->bytes()[0] & 0xe0) == 0x20;
}

}  // namespace alcove::network

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace alcove::network {

// An IPv4 or IPv6 address. IPv4 is kept in its mapped form (::ffff:a.b.c.d), so that the two
// spellings of one address are equal.
class IpAddress {
 public:
  IpAddress() = default;  // ::
  explicit IpAddress(const in6_addr& address);
  explicit IpAddress(in_addr address);
  static std::optional<IpAddress> parse(std::string_view text);

  bool is_v4() const;
  // The last four bytes, in host order.
  uint32_t v4() const;
  in_addr to_in_addr() const;
  in6_addr to_in6_addr() const;
  const std::array<uint8_t, 16>& bytes() const { return bytes_; }
  std::string to_text() const;

  friend auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  std::array<uint8_t, 16> bytes_{};
};

struct Endpoint {
  IpAddress address;
  uint16_t port = 0;

  static std::optional<Endpoint> from(const sockaddr_storage& address);
  // Returns the length; IPv4 addresses become AF_INET.
  socklen_t to_sockaddr(sockaddr_storage& out) const;
  int family() const { return address.is_v4() ? AF_INET : AF_INET6; }

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Both ends of a connection or of a flow of datagrams, as the sandbox sees it.
struct FlowKey {
  Endpoint from;
  Endpoint to;
  friend auto operator<=>(const FlowKey&, const FlowKey&) = default;
};

}  // namespace alcove::network

template <>
struct std::hash<alcove::network::FlowKey> {
  size_t operator()(const alcove::network::FlowKey& key) const noexcept {
    char bytes[36];
    std::memcpy(bytes, key.from.address.bytes().data(), 16);
    std::memcpy(bytes + 16, key.to.address.bytes().data(), 16);
    std::memcpy(bytes + 32, &key.from.port, 2);
    std::memcpy(bytes + 34, &key.to.port, 2);
    return std::hash<std::string_view>()({bytes, sizeof bytes});
  }
};

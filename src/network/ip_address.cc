// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/ip_address.h"

#include <arpa/inet.h>

#include <algorithm>

namespace alcove::network {
namespace {

constexpr std::array<uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

}  // namespace

IpAddress::IpAddress(const in6_addr& address) {
  std::memcpy(bytes_.data(), &address, sizeof address);
}

IpAddress::IpAddress(in_addr address) {
  std::ranges::copy(kMappedPrefix, bytes_.begin());
  std::memcpy(bytes_.data() + kMappedPrefix.size(), &address, sizeof address);
}

std::optional<IpAddress> IpAddress::parse(std::string_view text) {
  const std::string terminated(text);
  in_addr v4{};
  in6_addr v6{};
  if (::inet_pton(AF_INET, terminated.c_str(), &v4) == 1) return IpAddress(v4);
  if (::inet_pton(AF_INET6, terminated.c_str(), &v6) == 1) return IpAddress(v6);
  return {};
}

bool IpAddress::is_v4() const {
  return std::equal(kMappedPrefix.begin(), kMappedPrefix.end(), bytes_.begin());
}

uint32_t IpAddress::v4() const { return ntohl(to_in_addr().s_addr); }

in_addr IpAddress::to_in_addr() const {
  in_addr out{};
  std::memcpy(&out, bytes_.data() + kMappedPrefix.size(), sizeof out);
  return out;
}

in6_addr IpAddress::to_in6_addr() const {
  in6_addr out{};
  std::memcpy(&out, bytes_.data(), sizeof out);
  return out;
}

std::string IpAddress::to_text() const {
  char text[INET6_ADDRSTRLEN] = {};
  if (is_v4()) {
    const in_addr v4 = to_in_addr();
    ::inet_ntop(AF_INET, &v4, text, sizeof text);
  } else {
    ::inet_ntop(AF_INET6, bytes_.data(), text, sizeof text);
  }
  return text;
}

std::optional<Endpoint> Endpoint::from(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof v4);
    return Endpoint{IpAddress(v4.sin_addr), ntohs(v4.sin_port)};
  }
  if (address.ss_family == AF_INET6) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof v6);
    return Endpoint{IpAddress(v6.sin6_addr), ntohs(v6.sin6_port)};
  }
  return {};
}

socklen_t Endpoint::to_sockaddr(sockaddr_storage& out) const {
  out = {};
  if (address.is_v4()) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(port);
    v4.sin_addr = address.to_in_addr();
    std::memcpy(&out, &v4, sizeof v4);
    return sizeof v4;
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(port);
  v6.sin6_addr = address.to_in6_addr();
  std::memcpy(&out, &v6, sizeof v6);
  return sizeof v6;
}

}  // namespace alcove::network

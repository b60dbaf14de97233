// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/client_network.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>

#include "base/strings.h"

namespace alcove::gateway {

std::string client_network(std::string_view peer) {
  if (!peer.starts_with('[')) return std::string(peer.substr(0, peer.rfind(':')));
  const std::string host(peer.substr(1, peer.rfind(']') - 1));
  in6_addr address{};
  if (::inet_pton(AF_INET6, host.c_str(), &address) != 1) return host;
  char text[INET6_ADDRSTRLEN] = {};
  if (IN6_IS_ADDR_V4MAPPED(&address)) {
    // As a listener on [::] sees clients of IPv4.
    ::inet_ntop(AF_INET, &address.s6_addr[12], text, sizeof text);
    return text;
  }
  std::fill(std::begin(address.s6_addr) + 8, std::end(address.s6_addr), 0);
  ::inet_ntop(AF_INET6, &address, text, sizeof text);
  return cat(std::string_view(text), "/64");
}

}  // namespace alcove::gateway

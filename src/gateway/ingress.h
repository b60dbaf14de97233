// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "http/message.h"

namespace alcove::gateway {

// What a sandbox's `network` object says about traffic into it.
struct Ingress {
  // The Host that services see (maskRequestHost); "${PORT}" stands for the port. Empty: the
  // client's own.
  std::string mask_host;
  // The ports whose services speak TLS (httpsPorts), in order.
  std::vector<uint16_t> https_ports;

  bool speaks_tls(uint16_t port) const;
};

// Reads the stored object, which the API has checked; what is not there or unreadable is left out.
Ingress parse_ingress(std::string_view network_json);

// Sets Host as the mask says and keeps the client's in X-Forwarded-Host. The agent's port is never
// masked: signed URLs and clients rely on what they sent.
void mask_host(http::RequestHead& head, const Ingress& ingress, uint16_t port);

// The name in a Host field as TLS wants it: without a port; empty if it is an address or no name.
std::string server_name(std::string_view host);

}  // namespace alcove::gateway

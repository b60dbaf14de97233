// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove {

struct ListenAddress {
  std::string address;
  uint16_t port = 0;
};

// "127.0.0.1:3000", "[::1]:3000", or ":3000" for all IPv4 addresses.
Result<ListenAddress> parse_listen_address(std::string_view text);

// "http://127.0.0.1:3000"; an address that stands for all is shown as loopback.
std::string origin_of(const ListenAddress& listen);

}  // namespace alcove

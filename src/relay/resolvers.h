// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include <string>
#include <string_view>
#include <vector>

#include "network/ip_address.h"

namespace alcove::relay {

// The addresses of the `nameserver` lines of a resolv.conf.
std::vector<network::IpAddress> parse_resolv_conf(std::string_view text);

// The name servers that sandboxes' questions are led to.
class Resolvers {
 public:
  explicit Resolvers(std::string path = "/etc/resolv.conf") : path_(std::move(path)) {}

  // Used instead of the host's; none: the host's again.
  void set_override(std::vector<network::IpAddress> servers) { override_ = std::move(servers); }

  // The servers, the one to ask first at the front; the host's as its file is now.
  std::vector<network::IpAddress> servers();
  // This one did not answer: the others come before it.
  void blame(const network::IpAddress& server);

 private:
  void refresh();

  std::string path_;
  std::vector<network::IpAddress> override_;
  std::vector<network::IpAddress> host_;
  struct stat seen_{};
  network::IpAddress blamed_;
};

}  // namespace alcove::relay

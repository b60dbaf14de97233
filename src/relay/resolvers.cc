// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/resolvers.h"

#include <algorithm>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::relay {

std::vector<network::IpAddress> parse_resolv_conf(std::string_view text) {
  constexpr std::string_view kKeyword = "nameserver";
  std::vector<network::IpAddress> servers;
  for (std::string_view line : split(text, '\n')) {
    if (!line.starts_with(kKeyword)) continue;
    line.remove_prefix(kKeyword.size());
    if (line.empty() || (line[0] != ' ' && line[0] != '\t')) continue;
    line = trim(line);
    const auto address = network::IpAddress::parse(line.substr(0, line.find_first_of(" \t#;")));
    if (address && std::ranges::find(servers, *address) == servers.end()) {
      servers.push_back(*address);
    }
  }
  return servers;
}

void Resolvers::refresh() {
  struct stat now{};
  if (::stat(path_.c_str(), &now) != 0) return;
  if (now.st_ino == seen_.st_ino && now.st_dev == seen_.st_dev && now.st_size == seen_.st_size &&
      now.st_mtim.tv_sec == seen_.st_mtim.tv_sec && now.st_mtim.tv_nsec == seen_.st_mtim.tv_nsec) {
    return;
  }
  const auto text = sys::read_file(path_);
  if (!text) return;
  seen_ = now;
  host_ = parse_resolv_conf(*text);
}

std::vector<network::IpAddress> Resolvers::servers() {
  if (override_.empty()) refresh();
  std::vector<network::IpAddress> all = override_.empty() ? host_ : override_;
  const auto blamed = std::ranges::find(all, blamed_);
  if (blamed != all.end()) std::rotate(blamed, blamed + 1, all.end());
  return all;
}

void Resolvers::blame(const network::IpAddress& server) { blamed_ = server; }

}  // namespace alcove::relay

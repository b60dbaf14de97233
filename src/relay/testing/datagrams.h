// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <string>
#include <string_view>

#include "base/unique_fd.h"

namespace alcove::relay::testing {

inline bool arrives(const UniqueFd& fd, std::chrono::milliseconds patience) {
  pollfd waiting{fd.get(), POLLIN, 0};
  return ::poll(&waiting, 1, static_cast<int>(patience.count())) == 1;
}

// Receives one datagram and sends this back.
inline std::string answer_one(const UniqueFd& server, std::string_view answer) {
  std::string datagram(65536, '\0');
  sockaddr_storage from{};
  socklen_t length = sizeof from;
  const ssize_t got = ::recvfrom(server.get(), datagram.data(), datagram.size(), 0,
                                 reinterpret_cast<sockaddr*>(&from), &length);
  if (got < 0) return "(nothing)";
  datagram.resize(got);
  ::sendto(server.get(), answer.data(), answer.size(), 0, reinterpret_cast<sockaddr*>(&from),
           length);
  return datagram;
}

inline std::string receive_datagram(const UniqueFd& fd) {
  std::string datagram(65536, '\0');
  const ssize_t got = ::recv(fd.get(), datagram.data(), datagram.size(), 0);
  datagram.resize(got < 0 ? 0 : got);
  return got < 0 ? "(nothing)" : datagram;
}

}  // namespace alcove::relay::testing

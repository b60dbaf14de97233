// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/socket.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/unique_fd.h"
#include "net/tcp_stream.h"

namespace alcove::net::testing {

// Two connected Unix stream sockets.
inline std::pair<UniqueFd, UniqueFd> make_socket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) != 0) std::abort();
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

// The same as streams of `loop`.
inline std::pair<std::unique_ptr<TcpStream>, std::unique_ptr<TcpStream>> make_stream_pair(
    boost::asio::io_context& loop) {
  auto [one, other] = make_socket_pair();
  return {std::make_unique<TcpStream>(loop.get_executor(), std::move(one)),
          std::make_unique<TcpStream>(loop.get_executor(), std::move(other))};
}

}  // namespace alcove::net::testing

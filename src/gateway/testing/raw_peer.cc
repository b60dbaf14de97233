// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/testing/raw_peer.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <stdexcept>

#include "net/listener.h"

namespace alcove::gateway {
namespace {

constexpr int kPatienceMs = 10'000;

// Ends the test at hand: nothing after a peer that hangs makes sense.
[[noreturn]] void give_up(const std::string& why) { throw std::runtime_error(why); }

void wait_for(int fd, short events) {
  pollfd watched{.fd = fd, .events = events, .revents = 0};
  if (::poll(&watched, 1, kPatienceMs) <= 0) give_up("the other side does nothing");
}

}  // namespace

RawPeer::RawPeer(UniqueFd fd) : fd_(std::move(fd)) {
  const int on = 1;
  ::setsockopt(fd_.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

RawPeer RawPeer::connect_to(uint16_t port) {
  auto fd = net::start_connect("127.0.0.1", port);
  if (!fd) give_up(fd.error().message());
  wait_for(fd->get(), POLLOUT);
  return RawPeer(*std::move(fd));
}

void RawPeer::send(std::string_view data) {
  while (!data.empty()) {
    const ssize_t sent = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) {
      data.remove_prefix(static_cast<size_t>(sent));
    } else if (errno == EAGAIN) {
      wait_for(fd_.get(), POLLOUT);
    } else {
      give_up("send failed");
    }
  }
}

size_t RawPeer::send_until_blocked(int quiet_ms, size_t most) {
  const std::string data(64 * 1024, 'x');
  size_t total = 0;
  while (total < most) {
    const ssize_t sent = ::send(fd_.get(), data.data(), data.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      total += static_cast<size_t>(sent);
      continue;
    }
    if (errno != EAGAIN) give_up("send failed");
    pollfd watched{.fd = fd_.get(), .events = POLLOUT, .revents = 0};
    if (::poll(&watched, 1, quiet_ms) == 0) break;
  }
  return total;
}

RawPeer::Received RawPeer::receive() {
  wait_for(fd_.get(), POLLIN);
  std::array<char, 64 * 1024> chunk;
  const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), MSG_DONTWAIT);
  if (got < 0) return Received::kReset;
  if (got == 0) return Received::kEnd;
  buffer_.append(chunk.data(), static_cast<size_t>(got));
  return Received::kData;
}

std::string RawPeer::read_until(std::string_view mark) {
  size_t at;
  while ((at = buffer_.find(mark)) == std::string::npos) {
    if (receive() != Received::kData) {
      give_up("the connection ended before \"" + std::string(mark) + "\", after: " + buffer_);
    }
  }
  const std::string taken = buffer_.substr(0, at + mark.size());
  buffer_.erase(0, taken.size());
  return taken;
}

std::string RawPeer::read_bytes(size_t count) {
  while (buffer_.size() < count) {
    if (receive() != Received::kData) give_up("the connection ended early");
  }
  const std::string taken = buffer_.substr(0, count);
  buffer_.erase(0, count);
  return taken;
}

RawPeer::End RawPeer::read_to_end(std::string* rest) {
  Received received;
  while ((received = receive()) == Received::kData) {
  }
  if (rest != nullptr) *rest = std::move(buffer_);
  buffer_.clear();
  return received == Received::kEnd ? End::kClosed : End::kReset;
}

bool RawPeer::is_silent(int milliseconds) {
  if (!buffer_.empty()) return false;
  pollfd watched{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, milliseconds) == 0;
}

void RawPeer::shutdown_write() { ::shutdown(fd_.get(), SHUT_WR); }

void RawPeer::reset() {
  const linger now{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
  fd_.reset();
}

RawService::RawService(const char* address) {
  auto listener = net::make_listener(address, /*port=*/0);
  if (!listener) give_up(listener.error().message());
  fd_ = *std::move(listener);
  port_ = net::local_port(fd_).value();
}

RawPeer RawService::accept() {
  wait_for(fd_.get(), POLLIN);
  return RawPeer(UniqueFd(::accept4(fd_.get(), nullptr, nullptr, SOCK_CLOEXEC)));
}

bool RawService::has_connection(int milliseconds) {
  pollfd watched{.fd = fd_.get(), .events = POLLIN, .revents = 0};
  return ::poll(&watched, 1, milliseconds) > 0;
}

}  // namespace alcove::gateway

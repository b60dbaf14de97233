// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/tcp_stream.h"

#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <boost/asio/this_coro.hpp>

#include "net/address.h"

namespace alcove::net {
namespace {

using Direction = FdWait::Direction;

constexpr size_t kMostPieces = 16;

Error socket_error(int error_number, std::string_view what) {
  // A connection that the kernel gave up on is a peer that is gone, not a deadline of ours.
  if (error_number == ETIMEDOUT) return Error(Code::kUnavailable, "the peer does not answer");
  Error error = Error::from_errno(error_number, what);
  return error;
}

}  // namespace

TcpStream::TcpStream(const boost::asio::any_io_executor& executor, UniqueFd fd) {
  const int on = 1;
  // Fails on a Unix socket, which needs none of it.
  ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  fd_ = std::make_shared<FdWait>(executor, std::move(fd));
}

TcpStream::~TcpStream() { close(); }

Task<Result<void>> TcpStream::finish_connect(std::chrono::milliseconds timeout) {
  auto connected = co_await fd_->wait_connected(std::chrono::steady_clock::now() + timeout);
  if (!connected) co_return fail(std::move(connected).error().context("connect"));
  co_return connected;
}

Task<Result<size_t>> TcpStream::read_some(std::span<char> buffer) {
  const auto fd = fd_;
  if (fd->wants_turn()) co_await fd->give_turn();
  for (;;) {
    const ssize_t count = ::recv(fd->fd(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count >= 0) co_return static_cast<size_t>(count);
    if (errno == EINTR) continue;
    if (errno != EAGAIN && !fd->closed()) co_return fail(socket_error(errno, "receive"));
    ALCOVE_CO_TRY(co_await fd->wait(Direction::kRead));
  }
}

Task<Result<void>> TcpStream::write(std::span<const std::string_view> pieces) {
  const auto fd = fd_;
  if (fd->wants_turn()) co_await fd->give_turn();
  // `first` is the piece that is not written completely, `done` what went out of it.
  size_t first = 0;
  size_t done = 0;
  for (;;) {
    while (first < pieces.size() && done == pieces[first].size()) {
      ++first;
      done = 0;
    }
    if (first == pieces.size()) co_return Result<void>();
    std::array<iovec, kMostPieces> vectors;
    size_t used = 0;
    for (size_t i = first; i < pieces.size() && used < kMostPieces; ++i) {
      const std::string_view piece = i == first ? pieces[i].substr(done) : pieces[i];
      vectors[used++] = {const_cast<char*>(piece.data()), piece.size()};
    }
    msghdr message{};
    message.msg_iov = vectors.data();
    message.msg_iovlen = used;
    const ssize_t count = ::sendmsg(fd->fd(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      auto left = static_cast<size_t>(count);
      while (left > 0) {
        const size_t taken = std::min(left, pieces[first].size() - done);
        left -= taken;
        done += taken;
        if (left > 0) {
          ++first;
          done = 0;
        }
      }
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && !fd->closed()) co_return fail(socket_error(errno, "send"));
    ALCOVE_CO_TRY(co_await fd->wait(Direction::kWrite));
  }
}

Task<Result<void>> TcpStream::wait_readable() { return fd_->wait(Direction::kRead); }
Task<Result<void>> TcpStream::wait_writable() { return fd_->wait(Direction::kWrite); }

bool TcpStream::is_hung_up() const {
  if (fd_->closed()) return true;
  pollfd watched{.fd = fd_->fd(), .events = POLLRDHUP, .revents = 0};
  return ::poll(&watched, 1, /*timeout=*/0) > 0 &&
         (watched.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void TcpStream::cancel_read() { fd_->cancel(Direction::kRead); }

void TcpStream::set_read_deadline(std::optional<TimePoint> deadline) {
  fd_->set_deadline(Direction::kRead, deadline);
}
void TcpStream::set_write_deadline(std::optional<TimePoint> deadline) {
  fd_->set_deadline(Direction::kWrite, deadline);
}

void TcpStream::shutdown_write() { ::shutdown(fd_->fd(), SHUT_WR); }
void TcpStream::close() { fd_->close(); }

void TcpStream::abort() {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  ::setsockopt(fd_->fd(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  fd_->close();
}

int TcpStream::native_fd() const { return fd_->fd(); }
std::string TcpStream::peer_address() const { return net::peer_address(fd_->fd()); }

Task<Result<std::unique_ptr<Stream>>> finish_connect(UniqueFd fd,
                                                     std::chrono::milliseconds timeout) {
  auto stream =
      std::make_unique<TcpStream>(co_await boost::asio::this_coro::executor, std::move(fd));
  ALCOVE_CO_TRY(co_await stream->finish_connect(timeout));
  co_return std::unique_ptr<Stream>(std::move(stream));
}

}  // namespace alcove::net

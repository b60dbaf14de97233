// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "net/fd_stream.h"

#include <unistd.h>

#include <cerrno>

#include "net/sigpipe_guard.h"

namespace alcove::net {

using Direction = FdWait::Direction;

namespace {

std::optional<Result<size_t>> read_now(FdWait& fd, std::span<char> buffer) {
  for (;;) {
    const ssize_t count = ::read(fd.fd(), buffer.data(), buffer.size());
    if (count >= 0) return static_cast<size_t>(count);
    if (errno == EINTR) continue;
    if (errno == EAGAIN || fd.closed()) return std::nullopt;
    // A pty's master says EIO when nobody holds the other side (tty_ioctl(4), Linux).
    if (errno == EIO) return size_t{0};
    return fail_errno(errno, "read");
  }
}

}  // namespace

FdStream::FdStream(const boost::asio::any_io_executor& executor, UniqueFd fd)
    : fd_(std::make_shared<FdWait>(executor, std::move(fd))) {}

FdStream::~FdStream() {
  if (fd_) close();
}

std::optional<Result<size_t>> FdStream::try_read(std::span<char> buffer) {
  return read_now(*fd_, buffer);
}

Task<Result<size_t>> FdStream::read_some(std::span<char> buffer) {
  const auto fd = fd_;
  if (fd->wants_turn()) co_await fd->give_turn();
  for (;;) {
    if (auto outcome = read_now(*fd, buffer)) co_return std::move(*outcome);
    ALCOVE_CO_TRY(co_await fd->wait(Direction::kRead));
  }
}

Task<Result<size_t>> FdStream::write_some(std::string_view data) {
  const auto fd = fd_;
  if (fd->wants_turn()) co_await fd->give_turn();
  for (;;) {
    ssize_t count = 0;
    int error = 0;
    {
      SigpipeGuard guard;
      count = ::write(fd->fd(), data.data(), data.size());
      error = count < 0 ? errno : 0;
      if (error == EPIPE) guard.broken();
    }
    if (count >= 0) co_return static_cast<size_t>(count);
    if (error == EINTR) continue;
    if (error != EAGAIN && !fd->closed()) co_return fail_errno(error, "write");
    ALCOVE_CO_TRY(co_await fd->wait(Direction::kWrite));
  }
}

Task<Result<void>> FdStream::write_all(std::string_view data) {
  while (!data.empty()) {
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await write_some(data));
    data.remove_prefix(count);
  }
  co_return Result<void>();
}

Task<Result<void>> FdStream::wait_readable() { return fd_->wait(Direction::kRead); }
Task<Result<void>> FdStream::wait_writable() { return fd_->wait(Direction::kWrite); }

void FdStream::set_read_deadline(std::optional<TimePoint> deadline) {
  fd_->set_deadline(Direction::kRead, deadline);
}
void FdStream::set_write_deadline(std::optional<TimePoint> deadline) {
  fd_->set_deadline(Direction::kWrite, deadline);
}
void FdStream::close() { fd_->close(); }

}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/file_sender.h"

#include <sys/sendfile.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "net/sigpipe_guard.h"
#include "net/timer.h"

namespace alcove::http {
namespace {

// One turn of the loop: a client that takes everything at once must not starve the others.
constexpr uint64_t kTurn = 256 * 1024;
constexpr size_t kCopyBuffer = 64 * 1024;

Error too_short() { return Error(Code::kDataLoss, "the file became shorter while it was sent"); }

Task<Result<void>> copy_file(ConnectionIo& io, int fd, uint64_t offset, uint64_t count) {
  const auto memory = std::make_unique_for_overwrite<char[]>(kCopyBuffer);
  while (count > 0) {
    const auto wanted = static_cast<size_t>(std::min<uint64_t>(count, kCopyBuffer));
    const ssize_t got = ::pread(fd, memory.get(), wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) co_return fail_errno(errno, "read the file");
    if (got == 0) co_return fail(too_short());
    const std::string_view pieces[] = {{memory.get(), static_cast<size_t>(got)}};
    ALCOVE_CO_TRY(co_await io.write(pieces));
    offset += static_cast<uint64_t>(got);
    count -= static_cast<uint64_t>(got);
  }
  co_return Result<void>();
}

struct Sent {
  ssize_t count = 0;
  int error = 0;
};

Sent send_some(int socket, int fd, uint64_t offset, uint64_t count) {
  net::SigpipeGuard guard;
  auto position = static_cast<off_t>(offset);
  Sent sent;
  sent.count = ::sendfile(socket, fd, &position, static_cast<size_t>(std::min(count, kTurn)));
  sent.error = sent.count < 0 ? errno : 0;
  if (sent.error == EPIPE) guard.broken();
  return sent;
}

}  // namespace

Task<Result<void>> send_file(ConnectionIo& io, int fd, uint64_t offset, uint64_t count) {
  uint64_t in_turn = 0;
  while (count > 0) {
    const int socket = io.stream->native_fd();
    if (socket < 0) co_return co_await copy_file(io, fd, offset, count);
    const Sent sent = send_some(socket, fd, offset, count);
    if (sent.error == EINTR) continue;
    if (sent.error == EAGAIN) {
      io.begin_write();
      in_turn = 0;
      ALCOVE_CO_TRY(co_await io.stream->wait_writable());
      continue;
    }
    if (sent.error == EINVAL || sent.error == ENOSYS) {
      co_return co_await copy_file(io, fd, offset, count);
    }
    if (sent.error != 0) co_return fail_errno(sent.error, "send the file");
    if (sent.count == 0) co_return fail(too_short());
    offset += static_cast<uint64_t>(sent.count);
    count -= static_cast<uint64_t>(sent.count);
    in_turn += static_cast<uint64_t>(sent.count);
    if (in_turn >= kTurn && count > 0) {
      in_turn = 0;
      co_await net::yield();
    }
  }
  co_return Result<void>();
}

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/standard_io.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

namespace alcove::cli {
namespace {

// Large enough that a copy is not slowed by one round trip per piece.
constexpr size_t kPiece = 256 * 1024;

Result<std::string> read_piece(int stop) {
  pollfd waits[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                    {.fd = stop, .events = POLLIN, .revents = 0}};
  while (::poll(waits, 2, /*timeout=*/-1) < 0) {
    if (errno != EINTR) return fail_errno(errno, "wait for standard input");
  }
  if (waits[1].revents != 0) return std::string();
  std::string data(kPiece, '\0');
  for (;;) {
    const ssize_t count = ::read(STDIN_FILENO, data.data(), data.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return read_piece(stop);
    if (count < 0) return fail_errno(errno, "read standard input");
    data.resize(static_cast<size_t>(count));
    return data;
  }
}

}  // namespace

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count >= 0) {
      data.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EAGAIN) {
      pollfd wait{.fd = fd, .events = POLLOUT, .revents = 0};
      (void)::poll(&wait, 1, /*timeout=*/-1);
    } else if (errno != EINTR) {
      return fail_errno(errno, "write");
    }
  }
  return {};
}

StandardInput::StandardInput()
    : stop_(::eventfd(0, EFD_CLOEXEC)), pool_("stdin", /*max_threads=*/1, /*max_queued=*/1) {}

StandardInput::~StandardInput() {
  const uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
}

Task<Result<std::string>> StandardInput::read() {
  const int stop = stop_.get();
  co_return co_await pool_.run([stop] { return read_piece(stop); });
}

StandardOutput::StandardOutput() : pool_("stdout", /*max_threads=*/1, /*max_queued=*/1) {}

Task<Result<void>> StandardOutput::write(Target target, std::string data) {
  const int fd = target == Target::kOutput ? STDOUT_FILENO : STDERR_FILENO;
  co_return co_await pool_.run([fd, data = std::move(data)] { return write_all(fd, data); });
}

}  // namespace alcove::cli

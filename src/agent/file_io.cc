// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/file_io.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace alcove::agent {

Result<UniqueFd> open_file(const std::string& path, int flags, unsigned mode) {
  int fd = -1;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail_errno(errno, path);
  return UniqueFd(fd);
}

Result<std::string> read_regular_file(const std::string& path, size_t limit) {
  // O_NONBLOCK: a fifo in the file's place must not hold us up.
  ALCOVE_TRY_ASSIGN(const UniqueFd fd, open_file(path, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (::fstat(fd.get(), &info) != 0) return fail_errno(errno, path);
  if (!S_ISREG(info.st_mode)) return fail(Code::kInvalidArgument, path + ": not a regular file");
  std::string content;
  char buffer[16384];
  for (;;) {
    ALCOVE_TRY_ASSIGN(const size_t count, read_once(fd.get(), buffer, sizeof buffer));
    if (count == 0) return content;
    if (content.size() + count > limit) return fail(Code::kResourceExhausted, path + ": too long");
    content.append(buffer, count);
  }
}

Result<size_t> read_once(int fd, char* buffer, size_t buffer_size) {
  for (;;) {
    const ssize_t count = ::read(fd, buffer, buffer_size);
    if (count >= 0) return static_cast<size_t>(count);
    if (errno != EINTR) return fail_errno(errno, "read");
  }
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t count = ::write(fd, data.data(), data.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return fail_errno(errno, "write");
    }
    data.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

}  // namespace alcove::agent

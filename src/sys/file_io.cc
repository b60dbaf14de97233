// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/file_io.h"

#include <unistd.h>

#include <cerrno>

#include "base/strings.h"

namespace alcove::sys {

Result<UniqueFd> open_file(const std::string& path, int flags, mode_t mode) {
  int fd;
  do {
    fd = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return fail_errno(errno, cat("open ", path));
  return UniqueFd(fd);
}

Result<std::string> read_file(const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDONLY));
  std::string content;
  size_t used = 0;
  for (;;) {
    content.resize(used + 4096);
    const ssize_t got = ::read(fd.get(), content.data() + used, content.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return fail_errno(errno, cat("read ", path));
    used += static_cast<size_t>(got);
    if (got == 0) break;
  }
  content.resize(used);
  return content;
}

Result<void> write_file(const std::string& path, std::string_view content) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(path, O_WRONLY));
  ssize_t wrote;
  do {
    wrote = ::write(fd.get(), content.data(), content.size());
  } while (wrote < 0 && errno == EINTR);
  if (wrote < 0) return fail_errno(errno, cat("write ", path));
  return {};
}

}  // namespace alcove::sys

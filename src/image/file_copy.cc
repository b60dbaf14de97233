// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/file_copy.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

#include "image/files.h"

namespace alcove::image {

Result<void> copy_content(int from_fd, int to_fd) {
  if (::ioctl(to_fd, FICLONE, from_fd) == 0) return {};
  constexpr size_t kChunk = 64 << 20;
  bool first = true;
  while (true) {
    const ssize_t n = ::copy_file_range(from_fd, nullptr, to_fd, nullptr, kChunk, 0);
    if (n > 0) {
      first = false;
      continue;
    }
    // Some file systems answer 0 for a file that is not empty; read() then says the truth.
    if (n == 0 && !first) return {};
    if (n == 0 || errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS) {
      break;
    }
    if (errno != EINTR) return fail_errno(errno, "copy_file_range");
  }
  char buffer[65536];
  while (true) {
    const ssize_t n = ::read(from_fd, buffer, sizeof buffer);
    if (n == 0) return {};
    if (n > 0) {
      ALCOVE_TRY(write_all(to_fd, std::string_view(buffer, static_cast<size_t>(n))));
    } else if (errno != EINTR) {
      return fail_errno(errno, "read");
    }
  }
}

Result<void> apply_attributes(int path_fd, const struct stat& st) {
  if (::fchownat(path_fd, "", st.st_uid, st.st_gid, AT_EMPTY_PATH) != 0) {
    return fail_errno(errno, "chown");
  }
  // After chown, which clears the setuid bits.
  if (!S_ISLNK(st.st_mode) && ::chmod(fd_path(path_fd).c_str(), st.st_mode & 07777) != 0) {
    return fail_errno(errno, "chmod");
  }
  const struct timespec times[2] = {st.st_mtim, st.st_mtim};
  if (::utimensat(path_fd, "", times, AT_EMPTY_PATH) != 0) return fail_errno(errno, "utimensat");
  return {};
}

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/defer.h"
#include "base/ids.h"
#include "base/strings.h"

namespace alcove::image {

Result<UniqueFd> open_file_at(int dir_fd, const std::string& name, int flags, mode_t mode) {
  while (true) {
    const int fd = ::openat(dir_fd, name.c_str(), flags | O_CLOEXEC, mode);
    if (fd >= 0) return UniqueFd(fd);
    if (errno != EINTR) return fail_errno(errno, cat("open ", name));
  }
}

Result<UniqueFd> open_directory(const std::string& path) {
  return open_file(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
}

Result<void> make_directories(const std::string& path, mode_t mode) {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  if (!parent.empty()) std::filesystem::create_directories(parent, error);
  if (error) return fail_errno(error.value(), cat("mkdir ", parent.string()));
  if (::mkdir(path.c_str(), 0700) == 0) {
    if (::chmod(path.c_str(), mode) != 0) return fail_errno(errno, cat("chmod ", path));
    return {};
  }
  if (errno != EEXIST) return fail_errno(errno, cat("mkdir ", path));
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) return fail_errno(errno, cat("stat ", path));
  if (!S_ISDIR(st.st_mode)) return fail_errno(ENOTDIR, path);
  return {};
}

Result<void> write_all(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd, data.data(), data.size());
    if (n >= 0) {
      data.remove_prefix(static_cast<size_t>(n));
    } else if (errno != EINTR) {
      return fail_errno(errno, "write");
    }
  }
  return {};
}

Result<void> replace_file(const std::string& path, std::string_view content, mode_t mode) {
  const std::string temporary = cat(path, ".new-", random_hex(8));
  Rollback rollback;
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(temporary, O_WRONLY | O_CREAT | O_EXCL, 0600));
  rollback.add([&] { ::unlink(temporary.c_str()); });
  if (auto written = write_all(fd.get(), content); !written) {
    return fail(std::move(written).error().context(path));
  }
  if (::fchmod(fd.get(), mode) != 0) return fail_errno(errno, cat("chmod ", temporary));
  if (::fsync(fd.get()) != 0) return fail_errno(errno, cat("fsync ", temporary));
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    return fail_errno(errno, cat("rename to ", path));
  }
  rollback.release();
  return fsync_directory(std::filesystem::path(path).parent_path().string());
}

Result<void> fsync_directory(const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_directory(path));
  if (::fsync(fd.get()) != 0) return fail_errno(errno, cat("fsync ", path));
  return {};
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_directory(path));
  return list_directory_fd(fd.get());
}

Result<std::vector<std::string>> list_directory_fd(int fd) {
  // A descriptor of its own: fdopendir() takes it over and moves its position.
  ALCOVE_TRY_ASSIGN(UniqueFd own, open_file_at(fd, ".", O_RDONLY | O_DIRECTORY));
  DIR* dir = ::fdopendir(own.get());
  if (dir == nullptr) return fail_errno(errno, "fdopendir");
  (void)own.release();
  Defer close_dir([dir] { ::closedir(dir); });
  std::vector<std::string> names;
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(dir);
    if (entry == nullptr) {
      if (errno != 0) return fail_errno(errno, "readdir");
      break;
    }
    if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0) {
      names.emplace_back(entry->d_name);
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Result<void> lock_file_byte(int fd, int64_t offset, LockMode mode) {
  struct flock range{};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = offset;
  range.l_len = 1;
  // Locks of the open file, not of the process: threads exclude each other too.
  const int command = mode == LockMode::kWait ? F_OFD_SETLKW : F_OFD_SETLK;
  while (::fcntl(fd, command, &range) != 0) {
    if (errno != EINTR) return fail_errno(errno, "lock");
  }
  return {};
}

bool path_exists(const std::string& path) {
  struct stat st{};
  return ::lstat(path.c_str(), &st) == 0;
}

std::string fd_path(int fd) { return cat("/proc/self/fd/", fd); }

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "sys/file_io.h"

namespace alcove::image {

// Small file helpers of this room and of template/. All descriptors are close-on-exec.

using sys::open_file;
using sys::read_file;

Result<UniqueFd> open_file_at(int dir_fd, const std::string& name, int flags, mode_t mode = 0);
// A directory for reading; the last component must not be a symbolic link.
Result<UniqueFd> open_directory(const std::string& path);

// Like mkdir -p; `mode` is given to the last directory when it is new.
Result<void> make_directories(const std::string& path, mode_t mode = 0755);

Result<void> write_all(int fd, std::string_view data);
// Readers see the old or the new content, also after a crash.
Result<void> replace_file(const std::string& path, std::string_view content, mode_t mode);
Result<void> fsync_directory(const std::string& path);

// Names in a directory without "." and "..", sorted.
Result<std::vector<std::string>> list_directory(const std::string& path);
Result<std::vector<std::string>> list_directory_fd(int fd);

// Locks one byte of an open file for writing, against other descriptors of this and other
// processes; released when the last copy of this descriptor is closed. kTry fails with EAGAIN.
enum class LockMode { kWait, kTry };
Result<void> lock_file_byte(int fd, int64_t offset, LockMode mode);

bool path_exists(const std::string& path);

// "/proc/self/fd/<fd>": lets path calls work on an O_PATH descriptor without a second lookup.
std::string fd_path(int fd);

}  // namespace alcove::image

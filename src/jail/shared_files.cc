// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/shared_files.h"

#include <fcntl.h>
#include <sys/sendfile.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "jail/lean_root.h"
#include "sys/file_io.h"

namespace alcove::jail {
namespace {

bool same_file(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

Result<void> copy(int from, const std::string& to, off_t size) {
  ALCOVE_TRY_ASSIGN(const UniqueFd out, sys::open_file(to, O_WRONLY | O_CREAT | O_EXCL, 0555));
  for (off_t done = 0; done < size;) {
    const ssize_t sent = ::sendfile(out.get(), from, &done, static_cast<size_t>(size - done));
    if (sent < 0) return fail_errno(errno, cat("copy to ", to));
    if (sent == 0) return fail(Code::kDataLoss, "a file became shorter while it was copied");
  }
  return {};
}

}  // namespace

Result<std::string> SharedFiles::find(const std::string& path) {
  ALCOVE_TRY_ASSIGN(const UniqueFd file, sys::open_file(path, O_RDONLY));
  struct stat now{};
  if (::fstat(file.get(), &now) != 0) return fail_errno(errno, path);
  if (!S_ISREG(now.st_mode)) return fail_errno(EACCES, path);
  for (const Copy& known : copies_) {
    if (same_file(known.original, now)) return known.path;
  }
  const std::string to = cat(kLeanShared, "/", copies_.size());
  (void)::unlink(to.c_str());
  ALCOVE_TRY(copy(file.get(), to, now.st_size));
  copies_.push_back({now, to});
  return to;
}

}  // namespace alcove::jail

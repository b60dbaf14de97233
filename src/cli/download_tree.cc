// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/download_tree.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/strings.h"
#include "cli/copy_path.h"
#include "cli/printable.h"

namespace alcove::cli {
namespace {

// A sandbox can make up directories without end.
constexpr int kMaxDepth = 200;

Error in_the_way(std::string_view name) {
  return Error(Code::kFailedPrecondition,
               cat(printable(name), " exists and is not what is copied there: move it away"));
}

bool is_directory(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

}  // namespace

Result<UniqueFd> open_file_in(int parent, const std::string& name, unsigned mode) {
  // Without O_NONBLOCK a FIFO in its place would hold us up.
  UniqueFd fd(::openat(parent, name.c_str(),
                       O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, mode));
  if (!fd.valid() && (errno == ELOOP || errno == EISDIR || errno == ENXIO)) {
    return fail(in_the_way(name));
  }
  struct stat info{};
  if (!fd.valid() || ::fstat(fd.get(), &info) != 0) {
    return fail_errno(errno, cat("write ", printable(name)));
  }
  if (!S_ISREG(info.st_mode)) return fail(in_the_way(name));
  if (::ftruncate(fd.get(), 0) != 0) return fail_errno(errno, cat("write ", printable(name)));
  return fd;
}

Result<UniqueFd> open_directory_in(int parent, const std::string& name) {
  if (::mkdirat(parent, name.c_str(), 0777) != 0 && errno != EEXIST) {
    return fail_errno(errno, cat("make ", printable(name)));
  }
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid() && (errno == ELOOP || errno == ENOTDIR)) return fail(in_the_way(name));
  if (!fd.valid()) return fail_errno(errno, cat("open ", printable(name)));
  return fd;
}

Task<Result<void>> DownloadTree::copy(std::string from, std::string to) {
  if (from.empty()) from = ".";
  ALCOVE_CO_TRY_ASSIGN(const auto entry, co_await files_.find(from));
  if (!entry) co_return fail(Code::kNotFound, cat("the sandbox has no ", from));
  if (is_directory(to) && !base_name(from).empty()) to = join_path(to, base_name(from));
  // The target is the user's own word: links in it are followed.
  if (entry->kind == RemoteEntry::Kind::kDirectory) {
    if (::mkdir(to.c_str(), 0777) != 0 && errno != EEXIST) {
      co_return fail_errno(errno, cat("make ", to));
    }
    UniqueFd directory(::open(to.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!directory.valid()) co_return fail_errno(errno, cat("open ", to));
    co_return co_await copy_directory(from, std::move(directory), to, /*depth=*/0);
  }
  UniqueFd file(::open(to.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, entry->mode));
  if (!file.valid()) co_return fail_errno(errno, cat("write ", to));
  co_return co_await copy_file(from, *entry, std::move(file), to);
}

Task<Result<void>> DownloadTree::copy_directory(std::string from, UniqueFd to, std::string shown,
                                                int depth) {
  if (depth > kMaxDepth) {
    co_return fail(Code::kResourceExhausted,
                   cat("the directories below ", printable(from), " do not end"));
  }
  auto listed = co_await files_.list(from);
  if (!listed) co_return fail(std::move(listed).error().context(cat("list ", printable(from))));
  for (const RemoteEntry& entry : *listed) {
    if (!is_safe_name(entry.name)) {
      co_return fail(Code::kPermissionDenied,
                     cat("the sandbox lists a file named \"", printable(entry.name),
                         "\", which would leave ", shown, ": nothing more is copied"));
    }
    const bool is_directory = entry.kind == RemoteEntry::Kind::kDirectory;
    if (entry.kind == RemoteEntry::Kind::kOther || (is_directory && entry.is_link)) {
      ++left_out_;
      continue;
    }
    std::string source = join_path(from, entry.name);
    std::string target = join_path(shown, entry.name);
    if (is_directory) {
      ALCOVE_CO_TRY_ASSIGN(UniqueFd child, open_directory_in(to.get(), entry.name));
      ALCOVE_CO_TRY(co_await copy_directory(std::move(source), std::move(child), std::move(target),
                                            depth + 1));
    } else {
      ALCOVE_CO_TRY_ASSIGN(UniqueFd child, open_file_in(to.get(), entry.name, entry.mode));
      ALCOVE_CO_TRY(
          co_await copy_file(std::move(source), entry, std::move(child), std::move(target)));
    }
  }
  co_return Result<void>();
}

Task<Result<void>> DownloadTree::copy_file(std::string from, const RemoteEntry& entry, UniqueFd to,
                                           std::string shown) {
  progress_.begin_file(shown, entry.is_link ? 0 : entry.size);
  auto copied = co_await files_.download(from, to.get(), progress_);
  if (!copied) {
    co_return fail(std::move(copied).error().context(
        cat("copy ", printable(from), " (", printable(shown), " is not complete)")));
  }
  co_return Result<void>();
}

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/upload_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "base/strings.h"
#include "cli/copy_path.h"

namespace alcove::cli {
namespace {

// What the agent gives a new file.
constexpr unsigned kPlainMode = 0644;

Result<std::vector<std::string>> names_in(int directory, const std::string& shown) {
  // A descriptor of its own, which closedir() takes along.
  UniqueFd copy(::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  std::unique_ptr<DIR, decltype(&::closedir)> stream(
      copy.valid() ? ::fdopendir(copy.get()) : nullptr, &::closedir);
  if (!stream) return fail_errno(errno, cat("list ", shown));
  (void)copy.release();
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(stream.get());
    if (entry == nullptr && errno != 0) return fail_errno(errno, cat("list ", shown));
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  std::ranges::sort(names);
  return names;
}

// Does not wait for the other end of a FIFO.
constexpr int kOpenFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

}  // namespace

Task<Result<void>> UploadTree::copy(std::string from, std::string to) {
  UniqueFd source(::open(from.c_str(), kOpenFlags));
  struct stat info{};
  if (!source.valid() || ::fstat(source.get(), &info) != 0) {
    co_return fail_errno(errno, cat("read ", from));
  }
  if (to.empty()) to = ".";
  ALCOVE_CO_TRY_ASSIGN(const auto target, co_await files_.find(to));
  const bool into = target ? target->kind == RemoteEntry::Kind::kDirectory : to.ends_with('/');
  if (into && !base_name(from).empty()) to = join_path(to, base_name(from));
  if (S_ISDIR(info.st_mode)) {
    ALCOVE_CO_TRY(co_await copy_directory(std::move(source), from, to));
  } else if (S_ISREG(info.st_mode)) {
    ALCOVE_CO_TRY(co_await copy_file(std::move(source), from, to));
  } else {
    co_return fail(Code::kInvalidArgument, cat(from, " is neither a file nor a directory"));
  }
  auto done = co_await files_.set_modes(modes_);
  if (!done) {
    co_return fail(std::move(done).error().context(
        "everything was copied, but not the permissions of the files"));
  }
  co_return Result<void>();
}

Task<Result<void>> UploadTree::copy_directory(UniqueFd directory, std::string shown,
                                              std::string to) {
  auto made = co_await files_.make_dir(to);
  if (!made) co_return fail(std::move(made).error().context(cat("make ", to)));
  ALCOVE_CO_TRY_ASSIGN(const auto names, names_in(directory.get(), shown));
  for (const std::string& name : names) {
    ALCOVE_CO_TRY(
        co_await copy_entry(directory.get(), name, join_path(shown, name), join_path(to, name)));
  }
  co_return Result<void>();
}

Task<Result<void>> UploadTree::copy_entry(int parent, std::string name, std::string shown,
                                          std::string to) {
  struct stat entry{};
  struct stat target{};
  if (::fstatat(parent, name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0) {
    co_return fail_errno(errno, cat("read ", shown));
  }
  const bool broken = ::fstatat(parent, name.c_str(), &target, 0) != 0;
  // A link to a directory may lead in a circle.
  if (broken || (!S_ISREG(target.st_mode) && !S_ISDIR(entry.st_mode))) {
    ++left_out_;
    co_return Result<void>();
  }
  UniqueFd fd(::openat(parent, name.c_str(), kOpenFlags));
  if (!fd.valid()) co_return fail_errno(errno, cat("read ", shown));
  if (S_ISDIR(entry.st_mode)) {
    co_return co_await copy_directory(std::move(fd), std::move(shown), std::move(to));
  }
  co_return co_await copy_file(std::move(fd), std::move(shown), std::move(to));
}

Task<Result<void>> UploadTree::copy_file(UniqueFd file, std::string shown, std::string to) {
  struct stat info{};
  if (::fstat(file.get(), &info) != 0) co_return fail_errno(errno, cat("read ", shown));
  const auto size = static_cast<uint64_t>(info.st_size);
  progress_.begin_file(shown, size);
  auto sent = co_await files_.upload(file.get(), size, to, progress_);
  if (!sent) co_return fail(std::move(sent).error().context(cat("copy ", shown, " to ", to)));
  const unsigned mode = info.st_mode & 0777;
  if (mode != kPlainMode) modes_[mode].push_back(std::move(to));
  co_return Result<void>();
}

}  // namespace alcove::cli

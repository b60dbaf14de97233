// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/fs_operations.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>

#include "agent/paths.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent {
namespace {

// An answer is held in memory; beyond this a listing is refused instead of filling the sandbox's.
constexpr size_t kMaxEntries = 500'000;
// A directory that is filled while it is being removed is emptied again and again for so long.
constexpr std::chrono::seconds kMostEmptying{10};

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};
using DirStream = std::unique_ptr<DIR, CloseDir>;

Error internal_error(int error_number, std::string_view what) {
  return Error(Code::kInternal, Error::from_errno(error_number, what).message());
}

bool is_dot(std::string_view name) { return name == "." || name == ".."; }

std::vector<std::string> sorted_names(DIR* dir) {
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(dir)) {
    if (!is_dot(entry->d_name)) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The calling thread's own working directory, while this lives; the process's other threads do not
// see it. Invalid where the kernel does not let a thread have its own.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(int dir_fd) {
    thread_local const bool own = ::unshare(CLONE_FS) == 0;
    valid_ = own && ::fchdir(dir_fd) == 0;
  }
  ~WorkingDirectory() {
    // Else a mount stays busy for as long as the thread lives.
    if (valid_) (void)!::chdir("/");
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;

  bool valid() const { return valid_; }

 private:
  bool valid_ = false;
};

// Only with Links::kOnRootMount; else no error of a listing has this number.
bool leaves_root_mount(const Error& error) { return error.error_number() == EXDEV; }

// What vanishes in mid-walk is left out.
Result<std::vector<EntryInfo>> read_entries(const std::string& path, size_t limit,
                                            const Accounts& accounts, Links links) {
  const DirStream dir(::opendir(path.c_str()));
  if (!dir) return fail_errno(errno, path);
  auto names = sorted_names(dir.get());
  std::vector<EntryInfo> entries;
  entries.reserve(names.size());
  const WorkingDirectory here(::dirfd(dir.get()));
  if (!here.valid() && links == Links::kOnRootMount) return fail_errno(EXDEV, path);
  const std::string prefix = path.ends_with('/') ? path : path + "/";
  for (std::string& name : names) {
    auto entry = here.valid() ? read_entry_here(std::move(name), path, accounts, links)
                              : read_entry(prefix + name, accounts);
    if (!entry && leaves_root_mount(entry.error())) return fail(std::move(entry).error());
    if (!entry) continue;
    if (entries.size() >= limit) {
      return fail(Code::kResourceExhausted,
                  cat("'", path, "': more than ", kMaxEntries, " entries; use a smaller depth"));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

// Adds the entries of a directory and, in place, those of what is below it. What became unreadable
// in mid-walk is left out. `taken` counts the entries that were read anywhere so far.
Result<void> add_tree(std::vector<EntryInfo> entries, uint32_t depth, const Accounts& accounts,
                      Links links, size_t& taken, std::vector<EntryInfo>& out) {
  taken += entries.size();
  if (out.empty() && depth <= 1) {
    out = std::move(entries);
    return {};
  }
  for (EntryInfo& entry : entries) {
    const bool descend = depth > 1 && entry.type == FileType::kDirectory && !entry.is_symlink;
    const std::string child = descend ? entry.path : std::string();
    out.push_back(std::move(entry));
    if (!descend) continue;
    auto below = read_entries(child, kMaxEntries - taken, accounts, links);
    if (below) {
      ALCOVE_TRY(add_tree(*std::move(below), depth - 1, accounts, links, taken, out));
    } else if (below.error().code() == Code::kResourceExhausted ||
               leaves_root_mount(below.error())) {
      return fail(std::move(below).error());
    }
  }
  return {};
}

// What the failure to list the requested directory itself is to the client.
Error listing_error(int error_number, const std::string& path) {
  const std::string what = cat("list '", path, "'");
  if (error_number == ENOENT) return Error::from_errno(error_number, what);
  if (error_number == ELOOP) return Error(Code::kFailedPrecondition, what + ": cyclic symlink");
  return internal_error(error_number, what);
}

// Removes one entry of a directory. False for a directory that is not empty.
Result<bool> remove_child(int dir_fd, const char* name, bool is_directory, std::string_view path) {
  if (!is_directory) {
    if (::unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT) return true;
    if (errno != EISDIR && errno != EPERM) {
      return fail(internal_error(errno, cat("remove '", name, "' in '", path, "'")));
    }
  }
  if (::unlinkat(dir_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
  if (errno == ENOTEMPTY || errno == EEXIST) return false;
  // Something else took its place.
  if (is_directory && errno == ENOTDIR)
    return remove_child(dir_fd, name, /*is_directory=*/false, path);
  return fail(internal_error(errno, cat("remove '", name, "' in '", path, "'")));
}

// Removes what can be removed at once; returns the names of the directories that are not empty.
Result<std::vector<std::string>> remove_children(int dir_fd, std::string_view path) {
  const int copy = ::fcntl(dir_fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return fail(internal_error(errno, path));
  const DirStream dir(::fdopendir(copy));
  if (!dir) {
    const int error_number = errno;
    ::close(copy);
    return fail(internal_error(error_number, path));
  }
  ::rewinddir(dir.get());
  std::vector<std::string> left;
  while (const dirent* entry = ::readdir(dir.get())) {
    if (is_dot(entry->d_name)) continue;
    ALCOVE_TRY_ASSIGN(const bool removed,
                      remove_child(dir_fd, entry->d_name, entry->d_type == DT_DIR, path));
    if (!removed) left.emplace_back(entry->d_name);
  }
  return left;
}

// How long a directory has been filled while it was being removed.
class Refills {
 public:
  // Whether to empty it once more.
  bool again() {
    const auto now = std::chrono::steady_clock::now();
    if (!first_) first_ = now;
    return now - *first_ < kMostEmptying;
  }

 private:
  std::optional<std::chrono::steady_clock::time_point> first_;
};

// One directory on the way down to what is being removed.
struct Descent {
  // In its parent, and the parent's identity, by which ".." is checked on the way up.
  std::string name;
  dev_t parent_device = 0;
  ino_t parent_inode = 0;
  // Directories in it that are still to be emptied.
  std::vector<std::string> children;
  Refills refills = {};
};

// Goes down into a directory, unless it is gone or is none any more.
Result<void> descend(UniqueFd& current, const std::string& name, const std::string& path,
                     std::vector<Descent>& way) {
  struct stat info{};
  if (::fstat(current.get(), &info) != 0) return fail(internal_error(errno, path));
  UniqueFd next(
      ::openat(current.get(), name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!next.valid() && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
    // If it is one again, it is found again on the way up.
    ALCOVE_TRY(remove_child(current.get(), name.c_str(), /*is_directory=*/false, path));
    return {};
  }
  if (!next.valid()) return fail(internal_error(errno, cat("open '", name, "'")));
  current = std::move(next);
  ALCOVE_TRY_ASSIGN(auto children, remove_children(current.get(), path));
  way.push_back({name, info.st_dev, info.st_ino, std::move(children)});
  return {};
}

// Goes up from a directory that was emptied and removes it; stays if something came into it
// meanwhile.
Result<void> ascend(UniqueFd& current, const std::string& path, std::vector<Descent>& way) {
  Descent& last = way.back();
  UniqueFd parent(::openat(current.get(), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return fail(internal_error(errno, path));
  struct stat info{};
  if (::fstat(parent.get(), &info) != 0) return fail(internal_error(errno, path));
  // A directory that was moved away meanwhile would lead us out of the tree.
  if (info.st_dev != last.parent_device || info.st_ino != last.parent_inode) {
    return fail(Code::kInternal, cat("'", path, "' changed while it was being removed"));
  }
  if (::unlinkat(parent.get(), last.name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    const bool is_filled = errno == ENOTEMPTY || errno == EEXIST;
    if (!is_filled || !last.refills.again()) {
      return fail(internal_error(errno, cat("remove '", last.name, "'")));
    }
    ALCOVE_TRY_ASSIGN(last.children, remove_children(current.get(), path));
    return {};
  }
  way.pop_back();
  current = std::move(parent);
  return {};
}

// Empties a directory, however deep, with one descriptor and no recursion; each directory is read
// once unless something comes into it meanwhile.
Result<void> remove_below(UniqueFd current, const std::string& path) {
  std::vector<Descent> way(1);
  ALCOVE_TRY_ASSIGN(way.back().children, remove_children(current.get(), path));
  for (;;) {
    auto& children = way.back().children;
    if (!children.empty()) {
      const std::string child = std::move(children.back());
      children.pop_back();
      ALCOVE_TRY(descend(current, child, path, way));
    } else if (way.size() == 1) {
      return {};
    } else {
      ALCOVE_TRY(ascend(current, path, way));
    }
  }
}

}  // namespace

Result<std::vector<EntryInfo>> list_directory(const std::string& path, uint32_t depth,
                                              const Accounts& accounts, Links links) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return fail(listing_error(errno, path));
  if (!S_ISDIR(info.st_mode)) {
    return fail(Code::kInvalidArgument, cat("path '", path, "' is not a directory"));
  }
  auto top = read_entries(path, kMaxEntries, accounts, links);
  if (!top && top.error().error_number() != 0 && !leaves_root_mount(top.error())) {
    return fail(listing_error(top.error().error_number(), path));
  }
  if (!top) return fail(std::move(top).error());
  std::vector<EntryInfo> entries;
  size_t taken = 0;
  ALCOVE_TRY(
      add_tree(*std::move(top), std::max<uint32_t>(depth, 1), accounts, links, taken, entries));
  return entries;
}

Result<EntryInfo> make_directory(const std::string& path, const User& owner,
                                 const Accounts& accounts) {
  struct stat info{};
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISDIR(info.st_mode)) {
      return fail(Code::kAlreadyExists, cat("directory '", path, "' already exists"));
    }
    return fail(Code::kInvalidArgument, cat("path '", path, "' exists and is not a directory"));
  }
  if (auto made = ensure_directory(path, owner); !made) {
    return fail(Code::kInternal, made.error().message());
  }
  return read_entry(path, accounts);
}

Result<EntryInfo> move_entry(const std::string& source, const std::string& destination,
                             const User& owner, const Accounts& accounts) {
  if (auto made = ensure_directory(parent_path(destination), owner); !made) {
    return fail(Code::kInternal, made.error().message());
  }
  if (::rename(source.c_str(), destination.c_str()) != 0) {
    if (errno == ENOENT) {
      return fail(Code::kNotFound, cat("source file not found: '", source, "'"));
    }
    return fail(internal_error(errno, cat("move '", source, "' to '", destination, "'")));
  }
  return read_entry(destination, accounts);
}

Result<void> remove_entry(const std::string& path) {
  if (::unlink(path.c_str()) == 0 || errno == ENOENT) return {};
  if (errno != EISDIR && errno != EPERM) {
    return fail(internal_error(errno, cat("remove '", path, "'")));
  }
  for (Refills refills;;) {
    if (::rmdir(path.c_str()) == 0 || errno == ENOENT) return {};
    if ((errno != ENOTEMPTY && errno != EEXIST) || !refills.again()) {
      return fail(internal_error(errno, cat("remove '", path, "'")));
    }
    UniqueFd dir(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!dir.valid()) return fail(internal_error(errno, cat("remove '", path, "'")));
    ALCOVE_TRY(remove_below(std::move(dir), path));
  }
}

Result<void> ensure_directory(const std::string& path, const User& owner) {
  // Usually it is there; else the way up to the first existing one is looked for and made again
  // downwards.
  std::vector<std::string> missing;
  std::string level = path;
  for (;;) {
    struct stat info{};
    if (::stat(level.c_str(), &info) == 0) {
      if (!S_ISDIR(info.st_mode)) return fail_errno(ENOTDIR, level);
      break;
    }
    if (errno != ENOENT) return fail_errno(errno, level);
    missing.push_back(level);
    std::string above = parent_path(level);
    if (above == level) return fail_errno(ENOENT, level);
    level = std::move(above);
  }
  for (auto next = missing.rbegin(); next != missing.rend(); ++next) {
    if (::mkdir(next->c_str(), 0755) == 0) {
      if (::lchown(next->c_str(), owner.uid, owner.gid) != 0) return fail_errno(errno, *next);
      continue;
    }
    struct stat info{};
    const int error_number = errno;
    // Somebody else may have been quicker.
    if (error_number == EEXIST && ::stat(next->c_str(), &info) == 0 && S_ISDIR(info.st_mode)) {
      continue;
    }
    return fail_errno(error_number, *next);
  }
  return {};
}

}  // namespace alcove::agent

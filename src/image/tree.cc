// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/tree.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "base/strings.h"
#include "image/files.h"

namespace alcove::image {
namespace {

// A directory on the way from the root to the current one.
struct Level {
  dev_t device;
  ino_t inode;
  TreeEntry entry;  // of this directory in its parent; unused for the root
  size_t path_length;
  std::vector<std::string> names;
  size_t next = 0;
};

// The way back is ".." and not a kept descriptor: a hostile tree can be deeper than the number of
// files we may open.
Result<UniqueFd> open_parent(int fd, const Level& expected) {
  ALCOVE_TRY_ASSIGN(UniqueFd parent, open_file_at(fd, "..", O_RDONLY | O_DIRECTORY));
  struct stat st{};
  if (::fstat(parent.get(), &st) != 0) return fail_errno(errno, "fstat ..");
  if (st.st_dev != expected.device || st.st_ino != expected.inode) {
    return fail(Code::kAborted, "the directory tree changed while it was read");
  }
  return parent;
}

Result<Level> make_level(int fd, size_t path_length) {
  struct stat st{};
  if (::fstat(fd, &st) != 0) return fail_errno(errno, "fstat");
  ALCOVE_TRY_ASSIGN(auto names, list_directory_fd(fd));
  return Level{.device = st.st_dev,
               .inode = st.st_ino,
               .entry = {},
               .path_length = path_length,
               .names = std::move(names)};
}

class Remover final : public TreeVisitor {
 public:
  Result<void> enter(const TreeEntry& entry) override {
    if (S_ISDIR(entry.st.st_mode)) return {};
    return unlink(entry, 0);
  }
  Result<void> leave(const TreeEntry& entry) override { return unlink(entry, AT_REMOVEDIR); }

 private:
  static Result<void> unlink(const TreeEntry& entry, int flags) {
    if (::unlinkat(entry.parent_fd, entry.name.c_str(), flags) != 0 && errno != ENOENT) {
      return fail_errno(errno, cat("remove ", entry.path));
    }
    return {};
  }
};

class Sanitizer final : public TreeVisitor {
 public:
  explicit Sanitizer(const Notice& notice) : notice_(notice) {}

  Result<void> enter(const TreeEntry& entry) override {
    const mode_t type = entry.st.st_mode & S_IFMT;
    if (type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK) {
      if (::unlinkat(entry.parent_fd, entry.name.c_str(), 0) != 0) {
        return fail_errno(errno, cat("remove ", entry.path));
      }
      if (notice_) notice_(cat("left out device node or socket ", entry.path));
      return {};
    }
    if (entry.st.st_uid >= kIdsPerLayer || entry.st.st_gid >= kIdsPerLayer) {
      return fail(Code::kInvalidArgument, cat(entry.path, ": owner ", entry.st.st_uid, ":",
                                              entry.st.st_gid, " is beyond 65535"));
    }
    return {};
  }

 private:
  const Notice& notice_;
};

}  // namespace

Result<void> walk_tree(const std::string& root, TreeVisitor& visitor) {
  ALCOVE_TRY_ASSIGN(UniqueFd current, open_directory(root));
  std::vector<Level> levels;
  std::string path;
  {
    ALCOVE_TRY_ASSIGN(Level level, make_level(current.get(), 0));
    levels.push_back(std::move(level));
  }
  while (true) {
    Level& level = levels.back();
    if (level.next == level.names.size()) {
      if (levels.size() == 1) return {};
      TreeEntry entry = std::move(level.entry);
      levels.pop_back();
      ALCOVE_TRY_ASSIGN(current, open_parent(current.get(), levels.back()));
      entry.parent_fd = current.get();
      entry.path = path;
      ALCOVE_TRY(visitor.leave(entry));
      path.resize(levels.back().path_length);
      continue;
    }
    TreeEntry entry{
        .parent_fd = current.get(), .name = level.names[level.next++], .path = {}, .st = {}};
    if (::fstatat(current.get(), entry.name.c_str(), &entry.st, AT_SYMLINK_NOFOLLOW) != 0) {
      return fail_errno(errno, cat("stat ", path, "/", entry.name));
    }
    if (!path.empty()) path += '/';
    path += entry.name;
    entry.path = path;
    ALCOVE_TRY(visitor.enter(entry));
    if (!S_ISDIR(entry.st.st_mode)) {
      path.resize(level.path_length);
      continue;
    }
    if (entry.st.st_dev != level.device) {
      return fail(Code::kFailedPrecondition, cat(path, " is on another file system"));
    }
    ALCOVE_TRY_ASSIGN(current,
                      open_file_at(current.get(), entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
    ALCOVE_TRY_ASSIGN(Level below, make_level(current.get(), path.size()));
    below.entry = std::move(entry);
    levels.push_back(std::move(below));
  }
}

Result<void> remove_tree(const std::string& path) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) {
    if (errno == ENOENT) return {};
    return fail_errno(errno, cat("stat ", path));
  }
  if (!S_ISDIR(st.st_mode)) {
    if (::unlink(path.c_str()) != 0) return fail_errno(errno, cat("remove ", path));
    return {};
  }
  Remover remover;
  if (auto removed = walk_tree(path, remover); !removed) {
    return fail(std::move(removed).error().context(path));
  }
  if (::rmdir(path.c_str()) != 0) return fail_errno(errno, cat("rmdir ", path));
  return {};
}

Result<void> sanitize_tree(const std::string& root, const Notice& notice) {
  Sanitizer sanitizer(notice);
  return walk_tree(root, sanitizer);
}

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <map>
#include <utility>

#include "base/strings.h"
#include "image/file_copy.h"
#include "image/files.h"
#include "image/tree.h"
#include "image/xattrs.h"

namespace alcove::image {
namespace {

Result<void> copy_attributes(int from_fd, int to_fd, const struct stat& st) {
  ALCOVE_TRY(apply_attributes(to_fd, st));
  if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode)) return {};
  ALCOVE_TRY_ASSIGN(auto attributes, read_xattrs(from_fd));
  for (Xattr& attribute : attributes) {
    if (!is_allowed_in_layer(attribute.name)) continue;
    if (attribute.name == kCapabilityXattr) {
      auto value = capability_for_layer(attribute.value);
      if (!value) continue;
      attribute.value = std::move(*value);
    }
    ALCOVE_TRY(write_xattr(to_fd, attribute));
  }
  return {};
}

Result<void> check_owner(const struct stat& st) {
  if (st.st_uid < kIdsPerLayer && st.st_gid < kIdsPerLayer) return {};
  return fail(Code::kInvalidArgument, cat("owner ", st.st_uid, ":", st.st_gid, " is beyond 65535"));
}

class Copier final : public TreeVisitor {
 public:
  Copier(UniqueFd target, std::string target_root, const Notice& notice)
      : target_(std::move(target)), target_root_(std::move(target_root)), notice_(notice) {}

  Result<void> enter(const TreeEntry& entry) override { return named(entry, copy(entry)); }

  Result<void> leave(const TreeEntry& entry) override { return named(entry, finish(entry)); }

 private:
  static Result<void> named(const TreeEntry& entry, Result<void> result) {
    if (!result) return fail(std::move(result).error().context(entry.path));
    return {};
  }

  Result<void> copy(const TreeEntry& entry) {
    const mode_t type = entry.st.st_mode & S_IFMT;
    if (type == S_IFCHR || type == S_IFBLK || type == S_IFSOCK) {
      if (notice_) notice_(cat("left out device node or socket ", entry.path));
      return {};
    }
    ALCOVE_TRY(check_owner(entry.st));
    if (type == S_IFDIR) {
      if (::mkdirat(target_.get(), entry.name.c_str(), 0700) != 0) {
        return fail_errno(errno, "mkdir");
      }
      ALCOVE_TRY_ASSIGN(
          target_, open_file_at(target_.get(), entry.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
      return {};
    }
    if (entry.st.st_nlink > 1) {
      const auto [first, is_new] =
          links_.try_emplace({entry.st.st_dev, entry.st.st_ino}, entry.path);
      if (!is_new) return link_to(first->second, entry);
    }
    ALCOVE_TRY(make_file(entry, type));
    return copy_entry_attributes(entry);
  }

  // The first name may be deeper than PATH_MAX below the root; such links are refused by linkat.
  Result<void> link_to(const std::string& first, const TreeEntry& entry) {
    if (::linkat(AT_FDCWD, cat(target_root_, "/", first).c_str(), target_.get(), entry.name.c_str(),
                 0) != 0) {
      return fail_errno(errno, "link");
    }
    return {};
  }

  Result<void> make_file(const TreeEntry& entry, mode_t type) {
    if (type == S_IFLNK) {
      char text[PATH_MAX];
      const ssize_t length =
          ::readlinkat(entry.parent_fd, entry.name.c_str(), text, sizeof text - 1);
      if (length < 0) return fail_errno(errno, "readlink");
      text[length] = '\0';
      if (::symlinkat(text, target_.get(), entry.name.c_str()) != 0) {
        return fail_errno(errno, "symlink");
      }
      return {};
    }
    if (type == S_IFIFO) {
      if (::mkfifoat(target_.get(), entry.name.c_str(), 0600) != 0) {
        return fail_errno(errno, "mkfifo");
      }
      return {};
    }
    ALCOVE_TRY_ASSIGN(UniqueFd from, open_file_at(entry.parent_fd, entry.name,
                                                  O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
    ALCOVE_TRY_ASSIGN(UniqueFd to,
                      open_file_at(target_.get(), entry.name, O_WRONLY | O_CREAT | O_EXCL, 0600));
    return copy_content(from.get(), to.get());
  }

  Result<void> copy_entry_attributes(const TreeEntry& entry) {
    ALCOVE_TRY_ASSIGN(UniqueFd from,
                      open_file_at(entry.parent_fd, entry.name, O_PATH | O_NOFOLLOW));
    ALCOVE_TRY_ASSIGN(UniqueFd to, open_file_at(target_.get(), entry.name, O_PATH | O_NOFOLLOW));
    return copy_attributes(from.get(), to.get(), entry.st);
  }

  // A directory's times are set last: its content changed them.
  Result<void> finish(const TreeEntry& entry) {
    ALCOVE_TRY_ASSIGN(target_, open_file_at(target_.get(), "..", O_RDONLY | O_DIRECTORY));
    return copy_entry_attributes(entry);
  }

  UniqueFd target_;
  std::string target_root_;
  const Notice& notice_;
  std::map<std::pair<dev_t, ino_t>, std::string> links_;
};

}  // namespace

Result<void> copy_tree(const std::string& from, const std::string& to, const Notice& notice) {
  ALCOVE_TRY_ASSIGN(UniqueFd target, open_directory(to));
  Copier copier(std::move(target), to, notice);
  ALCOVE_TRY(walk_tree(from, copier));
  ALCOVE_TRY_ASSIGN(UniqueFd from_fd, open_file(from, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  ALCOVE_TRY_ASSIGN(UniqueFd to_fd, open_file(to, O_PATH | O_DIRECTORY | O_NOFOLLOW));
  struct stat st{};
  if (::fstat(from_fd.get(), &st) != 0) return fail_errno(errno, cat("stat ", from));
  if (auto checked = check_owner(st); !checked) {
    return fail(std::move(checked).error().context(from));
  }
  return copy_attributes(from_fd.get(), to_fd.get(), st);
}

}  // namespace alcove::image

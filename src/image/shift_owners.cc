// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <fcntl.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <set>
#include <utility>

#include "base/strings.h"
#include "image/files.h"
#include "image/tree.h"
#include "image/xattrs.h"

namespace alcove::image {
namespace {

bool is_whiteout(const struct stat& st) { return S_ISCHR(st.st_mode) && st.st_rdev == 0; }

// chown() takes setuid bits and capabilities away from files, so they are read before and given
// back after it.
class Shifter final : public TreeVisitor {
 public:
  explicit Shifter(uint32_t base) : base_(base) {}

  Result<void> enter(const TreeEntry& entry) override {
    ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file_at(entry.parent_fd, entry.name, O_PATH | O_NOFOLLOW));
    if (auto shifted = shift(fd.get(), entry.st); !shifted) {
      return fail(std::move(shifted).error().context(entry.path));
    }
    return {};
  }

  Result<void> shift(int fd, const struct stat& st) {
    // Overlayfs makes whiteouts with the mounter's ids; their owner has no meaning.
    if (is_whiteout(st)) return change_owner(fd, 0, 0);
    if (S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode)) {
      return fail(Code::kInvalidArgument,
                  cat("device node ", major(st.st_rdev), ":", minor(st.st_rdev)));
    }
    if (st.st_nlink > 1 && !S_ISDIR(st.st_mode) && !seen_.emplace(st.st_dev, st.st_ino).second) {
      return {};
    }
    if (!in_range(st.st_uid) || !in_range(st.st_gid)) {
      return fail(Code::kInvalidArgument,
                  cat("owner ", st.st_uid, ":", st.st_gid, " is not one of the sandbox's ids"));
    }
    const bool has_attributes = S_ISREG(st.st_mode) || S_ISDIR(st.st_mode);
    std::vector<Xattr> changed;
    if (has_attributes) {
      ALCOVE_TRY_ASSIGN(changed, shifted_attributes(fd));
    }
    ALCOVE_TRY(change_owner(fd, st.st_uid - base_, st.st_gid - base_));
    if (!S_ISLNK(st.st_mode) && (st.st_mode & (S_ISUID | S_ISGID)) != 0 &&
        ::chmod(fd_path(fd).c_str(), st.st_mode & 07777) != 0) {
      return fail_errno(errno, "chmod");
    }
    for (const Xattr& attribute : changed) ALCOVE_TRY(write_xattr(fd, attribute));
    return {};
  }

 private:
  bool in_range(uint32_t id) const { return id >= base_ && id - base_ < kIdsPerLayer; }

  static Result<void> change_owner(int fd, uid_t uid, gid_t gid) {
    if (::fchownat(fd, "", uid, gid, AT_EMPTY_PATH) != 0) return fail_errno(errno, "chown");
    return {};
  }

  Result<std::vector<Xattr>> shifted_attributes(int fd) const {
    ALCOVE_TRY_ASSIGN(auto attributes, read_xattrs(fd));
    std::vector<Xattr> changed;
    for (Xattr& attribute : attributes) {
      std::optional<std::string> value;
      if (attribute.name == kCapabilityXattr) {
        value = capability_for_layer(attribute.value);
      } else if (attribute.name.starts_with("system.posix_acl_")) {
        value = shift_acl(attribute.value, base_);
      } else {
        continue;
      }
      if (!value) return fail(Code::kInvalidArgument, cat("malformed ", attribute.name));
      changed.push_back(Xattr{.name = std::move(attribute.name), .value = std::move(*value)});
    }
    return changed;
  }

  uint32_t base_;
  std::set<std::pair<dev_t, ino_t>> seen_;
};

}  // namespace

Result<void> shift_owners(const std::string& root, uint32_t base) {
  Shifter shifter(base);
  ALCOVE_TRY(walk_tree(root, shifter));
  ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(root, O_PATH | O_NOFOLLOW | O_DIRECTORY));
  struct stat st{};
  if (::fstat(fd.get(), &st) != 0) return fail_errno(errno, cat("stat ", root));
  if (auto shifted = shifter.shift(fd.get(), st); !shifted) {
    return fail(std::move(shifted).error().context(root));
  }
  return {};
}

}  // namespace alcove::image

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/lean_root.h"

#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "sys/file_io.h"

namespace alcove::jail {
namespace {

Result<void> check(int status, std::string_view what) {
  if (status < 0) return fail_errno(errno, what);
  return {};
}

Result<UniqueFd> clone_tree(const std::string& dir, unsigned flags) {
  const int fd = ::open_tree(AT_FDCWD, dir.c_str(), OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | flags);
  if (fd < 0) return fail_errno(errno, cat("open_tree ", dir));
  return UniqueFd(fd);
}

Result<void> make_read_only(const UniqueFd& tree) {
  mount_attr attributes{};
  attributes.attr_set =
      MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  return check(::mount_setattr(tree.get(), "", AT_EMPTY_PATH, &attributes, sizeof attributes),
               "mount_setattr");
}

Result<void> attach(const UniqueFd& tree, const std::string& at) {
  return check(::move_mount(tree.get(), "", AT_FDCWD, at.c_str(), MOVE_MOUNT_F_EMPTY_PATH),
               cat("move_mount ", at));
}

Result<void> make_dir(const std::string& path) {
  return check(::mkdir(path.c_str(), 0755), cat("mkdir ", path));
}

Result<void> make_file(const std::string& path) {
  ALCOVE_TRY(sys::open_file(path, O_WRONLY | O_CREAT, 0444));
  return {};
}

Result<void> mount_own(const char* type, const char* at, unsigned long flags, const char* data) {
  return check(::mount(type, at, type, flags, data), cat("mount ", at));
}

// The new root hides `below` until the old one is gone: any directory will do.
Result<void> change_root(const std::string& below) {
  ALCOVE_TRY(check(::mount("alcove", below.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=755"),
                   "mount the launcher's root"));
  ALCOVE_TRY(check(::chdir(below.c_str()), "chdir to the launcher's root"));
  ALCOVE_TRY(check(static_cast<int>(::syscall(SYS_pivot_root, ".", ".")), "pivot_root"));
  ALCOVE_TRY(check(::umount2(".", MNT_DETACH), "detach the host's root"));
  return check(::chdir("/"), "chdir /");
}

Result<void> make_mount_points() {
  for (const char* dir : {kLeanData, kLeanDirs, kLeanCgroups, kLeanLayers, kLeanOverlay, kLeanRoot,
                          kLeanDev, kLeanShared, kLeanLook, kLeanLookWritable, "/proc", "/sys"}) {
    ALCOVE_TRY(make_dir(dir));
  }
  for (size_t i = 0; i < kMaxLayers; ++i) ALCOVE_TRY(make_dir(cat(kLeanLayers, "/", i)));
  ALCOVE_TRY(make_file(kLeanCaBundle));
  ALCOVE_TRY(make_file(kLeanInterpreter));
  return make_file(kLeanAgent);
}

// Sandboxes bind files from here. A mount of its own, so that those binds carry its locked flags.
Result<void> make_look() {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
  ALCOVE_TRY(mount_own("tmpfs", kLeanLookWritable, kFlags, "mode=755"));
  ALCOVE_TRY(check(::mount(kLeanLookWritable, kLeanLook, nullptr, MS_BIND, nullptr), "bind look"));
  ALCOVE_TRY(check(
      ::mount(nullptr, kLeanLook, nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | kFlags, nullptr),
      "make look read-only"));
  ALCOVE_TRY(make_dir(cat(kLeanLookWritable, "/empty-dir")));
  return make_file(cat(kLeanLookWritable, "/empty-file"));
}

}  // namespace

Result<void> enter_lean_root(const std::string& data_dir,
                             const std::vector<std::string>& extra_dirs,
                             const CgroupMounts& cgroup_mounts) {
  ALCOVE_TRY(check(::unshare(CLONE_NEWNS), "unshare mount namespace"));
  ALCOVE_TRY(check(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), "private mounts"));
  struct Tree {
    UniqueFd fd;
    std::string at;
  };
  std::vector<Tree> trees;
  auto add_tree = [&](const std::string& from, std::string at, unsigned flags) -> Result<void> {
    ALCOVE_TRY_ASSIGN(UniqueFd fd, clone_tree(from, flags));
    trees.push_back({std::move(fd), std::move(at)});
    return {};
  };
  ALCOVE_TRY(add_tree(data_dir, kLeanData, AT_RECURSIVE));
  for (size_t i = 0; i < extra_dirs.size(); ++i) {
    ALCOVE_TRY(add_tree(extra_dirs[i], cat(kLeanDirs, "/", i), AT_RECURSIVE));
  }
  for (const auto& [name, mount_point] : cgroup_mounts) {
    ALCOVE_TRY(add_tree(mount_point, cat(kLeanCgroups, "/", name), 0));
    ALCOVE_TRY(make_read_only(trees.back().fd));
  }
  ALCOVE_TRY(change_root(data_dir));
  ALCOVE_TRY(make_mount_points());
  for (const Tree& tree : trees) {
    if (tree.at != kLeanData) ALCOVE_TRY(make_dir(tree.at));
    ALCOVE_TRY(attach(tree.fd, tree.at));
  }
  // No restricting flags: a sandbox's own /proc could not have fewer of them.
  ALCOVE_TRY(mount_own("proc", "/proc", 0, nullptr));
  ALCOVE_TRY(mount_own("sysfs", "/sys", 0, nullptr));
  return make_look();
}

}  // namespace alcove::jail

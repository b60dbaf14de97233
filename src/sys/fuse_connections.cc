// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/fuse_connections.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::sys {
namespace {

// The kernel's list of connections, attached nowhere: many machines have it not mounted. It also
// shows what was unmounted and is still in use.
Result<UniqueFd> open_connections() {
  const UniqueFd context(::fsopen("fusectl", FSOPEN_CLOEXEC));
  if (!context.valid()) return fail_errno(errno, "open fusectl");
  if (::fsconfig(context.get(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0) {
    return fail_errno(errno, "make fusectl");
  }
  const UniqueFd mount(::fsmount(context.get(), FSMOUNT_CLOEXEC, 0));
  if (!mount.valid()) return fail_errno(errno, "mount fusectl");
  UniqueFd root(::openat(mount.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return fail_errno(errno, "open the connections of fusectl");
  return root;
}

}  // namespace

Result<void> abort_fuse_connections(uint32_t first_id, uint32_t count) {
  auto root = open_connections();
  if (!root && root.error().error_number() == ENODEV) return {};
  if (!root) return fail(std::move(root).error());
  const std::unique_ptr<DIR, decltype(&::closedir)> dir(::fdopendir(root->get()), &::closedir);
  if (!dir) return fail_errno(errno, "list the connections of fusectl");
  (void)root->release();
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string_view name = entry->d_name;
    if (name == "." || name == "..") continue;
    // It belongs to the user who mounted it, as the mount's option user_id says: one whom the
    // mount's user namespace knows.
    struct stat status{};
    if (::fstatat(::dirfd(dir.get()), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (status.st_uid - first_id >= count) continue;
    const std::string file = cat(name, "/abort");
    const UniqueFd abort(::openat(::dirfd(dir.get()), file.c_str(), O_WRONLY | O_CLOEXEC));
    // Otherwise it has just gone.
    if (abort.valid()) (void)!::write(abort.get(), "1", 1);
  }
  return {};
}

}  // namespace alcove::sys

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/pool_dirs.h"

#include <sys/stat.h>
#include <sys/statvfs.h>

#include <cerrno>

#include "base/strings.h"
#include "image/files.h"

namespace alcove::image {

Result<void> check_pool_name(const SandboxId& id) {
  auto parsed = parse_sandbox_id(id.str());
  if (!parsed || *parsed != id) {
    return fail(Code::kInvalidArgument, cat("not a sandbox id: ", id.str()));
  }
  return {};
}

Upper upper_below(const std::string& dir, const SandboxId& id) {
  return Upper{.upper_dir = cat(dir, "/", id.str(), "/upper"),
               .work_dir = cat(dir, "/", id.str(), "/work")};
}

Result<void> make_upper_dirs(int sandbox_dir_fd) {
  for (const char* name : {"upper", "work"}) {
    if (::mkdirat(sandbox_dir_fd, name, 0755) != 0) return fail_errno(errno, cat("mkdir ", name));
    // Independent of the umask: the sandbox's root directory takes its mode from here.
    if (::fchmodat(sandbox_dir_fd, name, 0755, 0) != 0) {
      return fail_errno(errno, cat("chmod ", name));
    }
  }
  return {};
}

Result<std::vector<SandboxId>> list_pool(const std::string& dir) {
  ALCOVE_TRY_ASSIGN(auto names, list_directory(dir));
  std::vector<SandboxId> ids;
  for (std::string& name : names) {
    SandboxId id(std::move(name));
    if (check_pool_name(id)) ids.push_back(std::move(id));
  }
  return ids;
}

Result<PoolSpace> file_system_space(const std::string& dir) {
  struct statvfs fs{};
  if (::statvfs(dir.c_str(), &fs) != 0) return fail_errno(errno, cat("statvfs ", dir));
  return PoolSpace{.total_bytes = static_cast<uint64_t>(fs.f_blocks) * fs.f_frsize,
                   .free_bytes = static_cast<uint64_t>(fs.f_bavail) * fs.f_frsize};
}

}  // namespace alcove::image

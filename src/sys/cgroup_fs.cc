// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "sys/cgroup_fs.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"
#include "sys/file_io.h"

namespace alcove::sys {
namespace {

class KernelCgroupFs final : public CgroupFs {
 public:
  Result<void> make_dir(const std::string& path) override {
    if (::mkdir(path.c_str(), 0755) != 0) return fail_errno(errno, cat("mkdir ", path));
    return {};
  }
  Result<void> remove_dir(const std::string& path) override {
    if (::rmdir(path.c_str()) != 0) return fail_errno(errno, cat("rmdir ", path));
    return {};
  }
  Result<std::string> read(const std::string& path) override { return read_file(path); }
  Result<void> write(const std::string& path, std::string_view value) override {
    return write_file(path, value);
  }
  bool exists(const std::string& path) override { return ::access(path.c_str(), F_OK) == 0; }
  std::vector<std::string> list_dirs(const std::string& path) override {
    std::vector<std::string> names;
    DIR* dir = ::opendir(path.c_str());
    if (dir == nullptr) return names;
    while (const dirent* entry = ::readdir(dir)) {
      const std::string_view name = entry->d_name;
      if (entry->d_type == DT_DIR && name != "." && name != "..") names.emplace_back(name);
    }
    ::closedir(dir);
    return names;
  }
};

}  // namespace

CgroupFs& kernel_cgroup_fs() {
  static KernelCgroupFs fs;
  return fs;
}

}  // namespace alcove::sys

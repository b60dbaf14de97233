// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::sys {

// The few file operations that cgroups need, so that tests can bring a kernel of their own.
class CgroupFs {
 public:
  virtual ~CgroupFs() = default;
  virtual Result<void> make_dir(const std::string& path) = 0;
  virtual Result<void> remove_dir(const std::string& path) = 0;
  virtual Result<std::string> read(const std::string& path) = 0;
  virtual Result<void> write(const std::string& path, std::string_view value) = 0;
  virtual bool exists(const std::string& path) = 0;
  // Names of the directories in `path`; empty if it does not exist.
  virtual std::vector<std::string> list_dirs(const std::string& path) = 0;
};

CgroupFs& kernel_cgroup_fs();

}  // namespace alcove::sys

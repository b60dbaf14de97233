// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/strings.h"
#include "jail/lean_root.h"

namespace alcove::jail {
namespace {

bool is_below(const std::string& path, const std::string& dir) {
  return path == dir ||
         (path.size() > dir.size() && path.starts_with(dir) && path[dir.size()] == '/');
}

}  // namespace

Result<std::string> to_lean_path(const std::string& host_path, const std::string& data_dir,
                                 const std::vector<std::string>& extra_dirs) {
  if (cat(host_path, "/").find("/../") != std::string::npos) {
    return fail(Code::kInvalidArgument, cat(host_path, " has \"..\" in it"));
  }
  if (is_below(host_path, data_dir)) return kLeanData + host_path.substr(data_dir.size());
  for (size_t i = 0; i < extra_dirs.size(); ++i) {
    if (is_below(host_path, extra_dirs[i])) {
      return cat(kLeanDirs, "/", i, host_path.substr(extra_dirs[i].size()));
    }
  }
  return fail(Code::kInvalidArgument,
              cat(host_path, " is neither in the data directory nor in an extra one"));
}

}  // namespace alcove::jail

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::cli {

// One side of a copy: a path here, or one in a sandbox ("<id>:<path>"). A local name with a colon
// is written "./a:b".
struct CopyPath {
  // Empty: a local path.
  std::string sandbox_id;
  std::string path;

  bool is_remote() const { return !sandbox_id.empty(); }
};
CopyPath parse_copy_path(std::string_view text);

// The last component, without slashes at the end: what a copy into a directory is called. Empty
// for "/", ".", ".." and what ends with those.
std::string base_name(std::string_view path);
std::string join_path(std::string_view directory, std::string_view name);

// True for a name that stays in its directory: one component, not "." or "..", no NUL. Names that
// a sandbox lists are hostile.
bool is_safe_name(std::string_view name);

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/unique_fd.h"

namespace alcove::agent {

// Where other file systems are mounted. Reads the kernel's list again only when that has changed.
// For one thread.
class MountPoints {
 public:
  // What a walk below a directory may come across.
  enum class Walk {
    kEntries,  // looks at the directory's entries, no further
    kTree,
  };
  // Whether nothing that may hang lies below this directory, given without links and dots. False
  // if the kernel does not say.
  bool none_below(std::string_view directory, Walk walk);

 private:
  struct Mount {
    std::string point;
    // A look at it asks nobody: the kernel's own, or one more place of the root file system.
    bool is_harmless = false;
  };
  bool refresh();
  void parse(std::string_view list);

  UniqueFd list_;
  std::vector<Mount> mounts_;
};

}  // namespace alcove::agent

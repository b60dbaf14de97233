// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "base/result.h"

namespace alcove::jail {

// The launcher's copies of agents and other files that are shown in sandboxes, in memory: one copy
// serves all of them (shared pages), and their mount tables do not tell where the data directory
// lies.
class SharedFiles {
 public:
  // The copy of this file, made at first use and again if the file has changed.
  Result<std::string> find(const std::string& path);

 private:
  struct Copy {
    struct stat original;
    std::string path;
  };
  std::vector<Copy> copies_;
};

}  // namespace alcove::jail

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>

#include "base/assert.h"

namespace alcove::store::testing {

// A fresh directory that is removed with everything in it.
class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "alcove-store-XXXXXX").string();
    ALCOVE_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace alcove::store::testing

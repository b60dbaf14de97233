// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace alcove::agent::testing {

// A directory that is removed with all that is in it.
class TempDir {
 public:
  explicit TempDir(const std::string& where = "/tmp") {
    std::string name = where + "/alcove-agent-test-XXXXXX";
    path_ = ::mkdtemp(name.data());
    std::filesystem::permissions(path_, std::filesystem::perms(0755));
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

inline std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace alcove::agent::testing

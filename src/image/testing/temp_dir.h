// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/stat.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "base/assert.h"
#include "image/tree.h"

namespace alcove::image {

// A directory for one test, removed with its content.
class TempDir {
 public:
  TempDir() {
    std::string name = "/tmp/alcove-test-XXXXXX";
    ALCOVE_ASSERT(::mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() { (void)remove_tree(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

inline std::string read_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

inline struct stat stat_of(const std::string& path) {
  struct stat st{};
  if (::lstat(path.c_str(), &st) != 0) st = {};
  return st;
}

}  // namespace alcove::image

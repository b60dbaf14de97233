// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/progress.h"
#include "cli/remote_files.h"
#include "net/task.h"

namespace alcove::cli {

// Copies a local file or directory into a sandbox.
class UploadTree {
 public:
  UploadTree(RemoteFiles& files, Progress& progress) : files_(files), progress_(progress) {}

  Task<Result<void>> copy(std::string from, std::string to);
  // How many entries were no files and no directories.
  uint64_t left_out() const { return left_out_; }

 private:
  Task<Result<void>> copy_directory(UniqueFd directory, std::string shown, std::string to);
  Task<Result<void>> copy_entry(int parent, std::string name, std::string shown, std::string to);
  Task<Result<void>> copy_file(UniqueFd file, std::string shown, std::string to);

  RemoteFiles& files_;
  Progress& progress_;
  // Files whose permissions are not those of a new file.
  std::map<unsigned, std::vector<std::string>> modes_;
  uint64_t left_out_ = 0;
};

}  // namespace alcove::cli

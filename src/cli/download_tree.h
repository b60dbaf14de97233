// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>

#include "base/result.h"
#include "base/unique_fd.h"
#include "cli/progress.h"
#include "cli/remote_files.h"
#include "net/task.h"

namespace alcove::cli {

// Copies a file or directory of a sandbox to this machine. The sandbox is hostile: a name that
// would leave the target directory ends the copy, and below that directory no link is followed.
class DownloadTree {
 public:
  DownloadTree(RemoteFiles& files, Progress& progress) : files_(files), progress_(progress) {}

  Task<Result<void>> copy(std::string from, std::string to);
  // How many entries were no files and no directories.
  uint64_t left_out() const { return left_out_; }

 private:
  Task<Result<void>> copy_directory(std::string from, UniqueFd to, std::string shown, int depth);
  Task<Result<void>> copy_file(std::string from, const RemoteEntry& entry, UniqueFd to,
                               std::string shown);

  RemoteFiles& files_;
  Progress& progress_;
  uint64_t left_out_ = 0;
};

// A file or directory `name` below `parent` to write to, made if there is none. A link or anything
// else in its place is refused.
Result<UniqueFd> open_file_in(int parent, const std::string& name, unsigned mode);
Result<UniqueFd> open_directory_in(int parent, const std::string& name);

}  // namespace alcove::cli

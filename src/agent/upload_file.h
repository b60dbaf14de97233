// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "agent/file_pools.h"
#include "agent/metadata.h"
#include "agent/users.h"
#include "base/result.h"
#include "net/task.h"

namespace alcove::agent {

// What the answer says about a stored file.
struct UploadedFile {
  std::string path;
  Metadata metadata;
};

// A file that is being written on a thread, in large pieces. The order of system calls is part of
// the protocol (3.4): watchers of a small new file see exactly CREATE, CHMOD, WRITE, so a small
// file is written with one write(), in place, without changing its mode or times.
class UploadFile {
 public:
  UploadFile(FileJobs jobs, std::string path, User owner, Metadata metadata);

  // Memory for the next bytes, never empty: put some there, then say how many.
  std::span<char> room();
  Task<Result<void>> filled(size_t count);
  // Takes all of `data`. (Writing one piece while the next is received was measured: no gain.)
  Task<Result<void>> add(std::string_view data);
  // Writes the rest; the file is complete then. Called once, and nothing after it.
  Task<Result<UploadedFile>> finish();

  // The HTTP status for a failure of the above.
  static int status_of(const Error& error);

 private:
  struct Job;
  Task<Result<void>> flush();

  FileJobs jobs_;
  // Shared with the pool's thread, which outlives a request that is canceled, and which closes a
  // file that was given up.
  std::shared_ptr<Job> job_;
  // Not zeroed: the pages that a small file does not fill are never touched.
  std::shared_ptr<char[]> buffer_;
  size_t used_ = 0;
};

}  // namespace alcove::agent

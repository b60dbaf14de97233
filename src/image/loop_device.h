// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "base/unique_fd.h"

namespace alcove::image {

// A file as a block device. The kernel detaches it when the last user (this object's descriptor or
// a mount) is gone.
class LoopDevice {
 public:
  // Attaches a free device to the file, or finds the one that has it already: two devices on one
  // file would destroy its file system.
  static Result<LoopDevice> attach(const std::string& file);

  const std::string& path() const { return path_; }

 private:
  LoopDevice(std::string path, UniqueFd fd) : path_(std::move(path)), fd_(std::move(fd)) {}

  std::string path_;
  UniqueFd fd_;
};

}  // namespace alcove::image

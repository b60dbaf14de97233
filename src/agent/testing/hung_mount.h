// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent::testing {

// A file system that answers nothing until its end, which is an error to all who wait. It is
// mounted in a namespace of the calling thread.
class HungMount {
 public:
  explicit HungMount(std::string point) : point_(std::move(point)) {
    device_.reset(::open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK));
    EXPECT_TRUE(device_.valid()) << "/dev/fuse";
    EXPECT_EQ(::unshare(CLONE_NEWNS), 0);
    EXPECT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
    EXPECT_EQ(::mkdir(point_.c_str(), 0755), 0);
    const std::string options =
        cat("fd=", device_.get(), ",rootmode=40000,user_id=0,group_id=0,allow_other");
    EXPECT_EQ(::mount("test", point_.c_str(), "fuse", MS_NOSUID | MS_NODEV, options.c_str()), 0)
        << std::strerror(errno);
  }
  ~HungMount() {
    end();
    ::umount2(point_.c_str(), MNT_DETACH);
  }
  HungMount(const HungMount&) = delete;
  HungMount& operator=(const HungMount&) = delete;

  void end() { device_.reset(); }

 private:
  const std::string point_;
  UniqueFd device_;
};

}  // namespace alcove::agent::testing

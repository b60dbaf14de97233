// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <fcntl.h>
#include <linux/fuse.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <vector>

namespace alcove::sys::testing {

// Mounts a file system on a new directory and starts a process that asks it for something and gets
// no answer. As the process has the file system's device open too, it cannot be ended by SIGKILL.
// Returns 0 when it has asked, or an errno.
inline int deadlock_in_fuse(const char* point, unsigned user) {
  const int device = ::open("/dev/fuse", O_RDWR | O_CLOEXEC);
  if (device < 0 || ::mkdir(point, 0755) != 0) return errno;
  char options[128];
  std::snprintf(options, sizeof options, "fd=%d,rootmode=40000,user_id=%u,group_id=0,allow_other",
                device, user);
  if (::mount("test", point, "fuse", MS_NOSUID | MS_NODEV, options) != 0) return errno;
  std::vector<char> request(FUSE_MIN_READ_BUFFER * 2);
  if (::read(device, request.data(), request.size()) < 0) return errno;
  struct {
    fuse_out_header header;
    fuse_init_out init;
  } answer{};
  answer.header.len = sizeof answer;
  answer.header.unique = reinterpret_cast<const fuse_in_header*>(request.data())->unique;
  answer.init.major = FUSE_KERNEL_VERSION;
  answer.init.minor = 31;
  answer.init.max_write = 4096;
  if (::write(device, &answer, sizeof answer) < 0) return errno;
  const pid_t child = ::fork();
  if (child < 0) return errno;
  if (child == 0) {
    // Nobody waits for the end of anything else.
    ::close_range(0, static_cast<unsigned>(device) - 1, 0);
    ::close_range(static_cast<unsigned>(device) + 1, ~0U, 0);
    struct stat status{};
    ::stat(point, &status);
    ::_exit(0);
  }
  return ::read(device, request.data(), request.size()) < 0 ? errno : 0;
}

}  // namespace alcove::sys::testing

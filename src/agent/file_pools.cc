// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/file_pools.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <string_view>

#include "agent/root_mount.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::agent {
namespace {

// They exist only while there is work. Those of other mounts are taken away by file systems that
// hang, so there are spare ones for when all of them do; the others have a few, for what is mounted
// in a call's way after it was looked at.
constexpr size_t kThreads = 16;
constexpr size_t kSpareRootThreads = 32;
constexpr size_t kSpareMountThreads = 112;
constexpr size_t kMostRootJobs = 4096;
// An upload that waits here holds its piece of 1 MiB.
constexpr size_t kMostMountJobs = 256;

}  // namespace

FilePools::FilePools()
    : root_pool_("file", kThreads, kMostRootJobs, kSpareRootThreads),
      mounts_pool_("mounted file", kThreads, kMostMountJobs, kSpareMountThreads) {}

FileThreads FilePools::at(const std::string& path) {
  return stays_on_root_mount(path) ? on_root_mount() : anywhere();
}

FileThreads FilePools::below(const std::string& path, MountPoints::Walk walk) {
  const UniqueFd found = find_on_root_mount(path);
  if (!found.valid()) return at(path);
  std::array<char, PATH_MAX> directory;
  const std::string link = cat("/proc/self/fd/", found.get());
  const ssize_t size = ::readlink(link.c_str(), directory.data(), directory.size());
  if (size <= 0 || static_cast<size_t>(size) == directory.size()) return anywhere();
  const std::string_view name(directory.data(), static_cast<size_t>(size));
  return mount_points_.none_below(name, walk) ? on_root_mount() : anywhere();
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/loop_device.h"

#include <fcntl.h>
#include <linux/loop.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include "base/strings.h"
#include "image/files.h"

namespace alcove::image {
namespace {

struct Attached {
  std::string path;
  UniqueFd fd;
};

std::optional<Attached> find_attached(const struct stat& file) {
  auto names = list_directory("/sys/block");
  if (!names) return {};
  for (const std::string& name : *names) {
    if (!name.starts_with("loop") || !path_exists(cat("/sys/block/", name, "/loop"))) continue;
    std::string path = cat("/dev/", name);
    auto fd = open_file(path, O_RDWR);
    if (!fd) continue;
    loop_info64 info{};
    if (::ioctl(fd->get(), LOOP_GET_STATUS64, &info) != 0) continue;
    if (info.lo_device == file.st_dev && info.lo_inode == file.st_ino) {
      return Attached{.path = std::move(path), .fd = std::move(*fd)};
    }
  }
  return {};
}

}  // namespace

Result<LoopDevice> LoopDevice::attach(const std::string& file) {
  ALCOVE_TRY_ASSIGN(UniqueFd backing, open_file(file, O_RDWR));
  struct stat st{};
  if (::fstat(backing.get(), &st) != 0) return fail_errno(errno, cat("stat ", file));
  if (auto found = find_attached(st))
    return LoopDevice(std::move(found->path), std::move(found->fd));

  ALCOVE_TRY_ASSIGN(UniqueFd control, open_file("/dev/loop-control", O_RDWR));
  constexpr int kAttempts = 64;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    const int number = ::ioctl(control.get(), LOOP_CTL_GET_FREE);
    if (number < 0) return fail_errno(errno, "LOOP_CTL_GET_FREE");
    std::string path = cat("/dev/loop", number);
    ALCOVE_TRY_ASSIGN(UniqueFd fd, open_file(path, O_RDWR));
    loop_config config{};
    config.fd = static_cast<__u32>(backing.get());
    // Direct I/O: the pool's pages are cached once, by the file system on the device.
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO;
    std::strncpy(reinterpret_cast<char*>(config.info.lo_file_name), file.c_str(), LO_NAME_SIZE - 1);
    if (::ioctl(fd.get(), LOOP_CONFIGURE, &config) == 0) {
      return LoopDevice(std::move(path), std::move(fd));
    }
    // Somebody else took the free device first.
    if (errno != EBUSY) return fail_errno(errno, cat("LOOP_CONFIGURE ", path));
  }
  return fail(Code::kUnavailable, "no free loop device");
}

}  // namespace alcove::image

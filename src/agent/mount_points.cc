// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/mount_points.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include "base/mountinfo.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

// Their directories and files answer by themselves.
constexpr std::array<std::string_view, 7> kKernelTypes = {"proc",   "sysfs",  "tmpfs",  "devtmpfs",
                                                          "devpts", "mqueue", "cgroup2"};

// A line of mountinfo: "<id> <parent> <device> <root> <point> <options>... - <type> ...".
struct Line {
  std::string_view device;
  std::string_view point;
  std::string_view type;
};

std::optional<Line> parse_line(std::string_view text) {
  const auto words = split(text, ' ');
  const auto dash = std::find(words.begin(), words.end(), "-");
  if (words.size() < 5 || dash == words.end() || dash + 1 == words.end()) return {};
  return Line{words[2], words[4], *(dash + 1)};
}

}  // namespace

bool MountPoints::none_below(std::string_view directory, Walk walk) {
  if (!refresh()) return false;
  const std::string prefix = directory == "/" ? "/" : cat(directory, "/");
  return std::none_of(mounts_.begin(), mounts_.end(), [&](const Mount& mount) {
    if (!mount.point.starts_with(prefix) || mount.point.size() == prefix.size()) return false;
    if (walk == Walk::kTree) return true;
    const bool is_entry = mount.point.find('/', prefix.size()) == std::string::npos;
    return is_entry && !mount.is_harmless;
  });
}

bool MountPoints::refresh() {
  if (!list_.valid()) {
    list_.reset(::open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC));
    if (!list_.valid()) return false;
  } else {
    // The kernel marks the list when it has changed (proc(5)).
    pollfd changed{.fd = list_.get(), .events = POLLPRI, .revents = 0};
    if (::poll(&changed, 1, /*timeout=*/0) == 0) return true;
  }
  std::string text;
  std::array<char, 16 * 1024> piece;
  if (::lseek(list_.get(), 0, SEEK_SET) != 0) return false;
  for (;;) {
    const ssize_t count = ::read(list_.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      list_.reset();
      return false;
    }
    if (count == 0) break;
    text.append(piece.data(), static_cast<size_t>(count));
  }
  parse(text);
  return true;
}

void MountPoints::parse(std::string_view list) {
  mounts_.clear();
  std::vector<Line> lines;
  std::string_view root_device;
  for (const std::string_view text : split(list, '\n')) {
    const auto line = parse_line(text);
    if (!line) continue;
    // The last one is on top.
    if (line->point == "/") root_device = line->device;
    lines.push_back(*line);
  }
  for (const Line& line : lines) {
    const bool is_kernels =
        std::find(kKernelTypes.begin(), kKernelTypes.end(), line.type) != kKernelTypes.end();
    mounts_.push_back({unescape_mountinfo(line.point), is_kernels || line.device == root_device});
  }
}

}  // namespace alcove::agent

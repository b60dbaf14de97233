// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "image/xattrs.h"

#include <endian.h>
#include <linux/capability.h>
#include <sys/xattr.h>

#include <cerrno>
#include <cstring>

#include "base/strings.h"
#include "image/files.h"
#include "image/tree.h"

namespace alcove::image {
namespace {

uint32_t load_le32(const char* bytes) {
  uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return le32toh(value);
}

void store_le32(char* bytes, uint32_t value) {
  value = htole32(value);
  std::memcpy(bytes, &value, sizeof value);
}

Result<std::string> read_xattr(const std::string& path, const char* name) {
  std::string value;
  while (true) {
    const ssize_t size = ::getxattr(path.c_str(), name, nullptr, 0);
    if (size < 0) return fail_errno(errno, cat("getxattr ", name));
    value.resize(static_cast<size_t>(size));
    const ssize_t got = ::getxattr(path.c_str(), name, value.data(), value.size());
    if (got >= 0) {
      value.resize(static_cast<size_t>(got));
      return value;
    }
    if (errno != ERANGE) return fail_errno(errno, cat("getxattr ", name));
  }
}

}  // namespace

Result<std::vector<Xattr>> read_xattrs(int path_fd) {
  const std::string path = fd_path(path_fd);
  std::string names;
  while (true) {
    const ssize_t size = ::listxattr(path.c_str(), nullptr, 0);
    if (size < 0 && errno == ENOTSUP) return std::vector<Xattr>{};
    if (size < 0) return fail_errno(errno, "listxattr");
    names.resize(static_cast<size_t>(size));
    const ssize_t got = ::listxattr(path.c_str(), names.data(), names.size());
    if (got >= 0) {
      names.resize(static_cast<size_t>(got));
      break;
    }
    if (errno != ERANGE) return fail_errno(errno, "listxattr");
  }
  std::vector<Xattr> attributes;
  for (std::string_view name : split(names, '\0')) {
    if (name.empty()) continue;
    Xattr attribute{.name = std::string(name), .value = {}};
    ALCOVE_TRY_ASSIGN(attribute.value, read_xattr(path, attribute.name.c_str()));
    attributes.push_back(std::move(attribute));
  }
  return attributes;
}

Result<void> write_xattr(int path_fd, const Xattr& attribute) {
  if (::setxattr(fd_path(path_fd).c_str(), attribute.name.c_str(), attribute.value.data(),
                 attribute.value.size(), 0) != 0) {
    return fail_errno(errno, cat("setxattr ", attribute.name));
  }
  return {};
}

bool is_allowed_in_layer(std::string_view name) {
  if (name == kCapabilityXattr) return true;
  return name.starts_with("user.") && !name.starts_with("user.overlay.");
}

std::optional<std::string> capability_for_layer(std::string_view value) {
  if (value.size() != XATTR_CAPS_SZ_2 && value.size() != XATTR_CAPS_SZ_3) return {};
  const uint32_t magic = load_le32(value.data());
  const uint32_t revision = magic & VFS_CAP_REVISION_MASK;
  if (revision == VFS_CAP_REVISION_2 && value.size() == XATTR_CAPS_SZ_2) return std::string(value);
  if (revision != VFS_CAP_REVISION_3 || value.size() != XATTR_CAPS_SZ_3) return {};
  std::string result(value.substr(0, XATTR_CAPS_SZ_2));
  store_le32(result.data(), VFS_CAP_REVISION_2 | (magic & VFS_CAP_FLAGS_EFFECTIVE));
  return result;
}

std::optional<std::string> shift_acl(std::string_view value, uint32_t base) {
  // linux/posix_acl_xattr.h: a version, then entries of tag, permissions and id.
  constexpr size_t kHeader = 4;
  constexpr size_t kEntry = 8;
  constexpr uint16_t kUser = 0x02;
  constexpr uint16_t kGroup = 0x08;
  if (value.size() < kHeader || (value.size() - kHeader) % kEntry != 0) return {};
  std::string result(value);
  for (size_t at = kHeader; at < result.size(); at += kEntry) {
    uint16_t tag;
    std::memcpy(&tag, result.data() + at, sizeof tag);
    tag = le16toh(tag);
    if (tag != kUser && tag != kGroup) continue;
    const uint32_t id = load_le32(result.data() + at + 4);
    if (id < base || id - base >= kIdsPerLayer) return {};
    store_le32(result.data() + at + 4, id - base);
  }
  return result;
}

}  // namespace alcove::image

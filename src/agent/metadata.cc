// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/metadata.h"

#include <sys/xattr.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <vector>

#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr std::string_view kHeaderPrefix = "x-metadata-";
constexpr std::string_view kAttributePrefix = "user.e2b.";
constexpr size_t kMaxKeyLength = 246;  // 255, the kernel's limit for a name, less the prefix
constexpr size_t kMaxTotal = 4096;     // what ext4 stores for one file

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= 0x20 && c <= 0x7e; });
}

// Calls an xattr function until its buffer is large enough. Empty if there is nothing to read.
std::string call_until_it_fits(const std::function<ssize_t(char*, size_t)>& call) {
  std::string buffer(256, '\0');
  for (int attempt = 0; attempt < 8; ++attempt) {
    const ssize_t size = call(buffer.data(), buffer.size());
    if (size >= 0) {
      buffer.resize(static_cast<size_t>(size));
      return buffer;
    }
    if (errno != ERANGE) return {};
    const ssize_t wanted = call(nullptr, 0);
    if (wanted < 0) return {};
    buffer.resize(static_cast<size_t>(wanted) + 256);
  }
  return {};
}

// Full attribute names with our prefix, from a list of NUL-terminated names.
std::vector<std::string> our_names(const std::string& list) {
  std::vector<std::string> names;
  for (const std::string_view name : split(list, '\0')) {
    if (name.size() > kAttributePrefix.size() && name.starts_with(kAttributePrefix)) {
      names.emplace_back(name);
    }
  }
  return names;
}

bool attributes_unsupported(int error_number) {
  return error_number == EOPNOTSUPP || error_number == ENOSYS;
}

}  // namespace

Result<Metadata> parse_metadata_headers(const http::Headers& headers) {
  Metadata metadata;
  size_t total = 0;
  for (const auto& [field, value] : headers) {
    const std::string name = to_lower(field);
    if (!name.starts_with(kHeaderPrefix)) continue;
    const std::string key = name.substr(kHeaderPrefix.size());
    if (key.empty()) continue;
    if (!is_printable(key) || !is_printable(value)) {
      return fail(Code::kInvalidArgument,
                  "metadata keys and values must consist of printable ASCII characters");
    }
    if (key.size() > kMaxKeyLength) {
      return fail(Code::kInvalidArgument,
                  cat("metadata key is longer than ", kMaxKeyLength, " bytes"));
    }
    if (!metadata.emplace(key, value).second) continue;
    total += kAttributePrefix.size() + key.size() + value.size();
    if (total > kMaxTotal) {
      return fail(Code::kInvalidArgument, cat("metadata is larger than ", kMaxTotal, " bytes"));
    }
  }
  return metadata;
}

Metadata read_metadata(const std::string& path) {
  Metadata metadata;
  // Nearly no file has any.
  if (::listxattr(path.c_str(), nullptr, 0) <= 0) return metadata;
  const std::string list = call_until_it_fits(
      [&](char* buffer, size_t size) { return ::listxattr(path.c_str(), buffer, size); });
  for (const std::string& name : our_names(list)) {
    const std::string value = call_until_it_fits([&](char* buffer, size_t size) {
      return ::getxattr(path.c_str(), name.c_str(), buffer, size);
    });
    const std::string key = name.substr(kAttributePrefix.size());
    if (is_valid_utf8(key) && is_valid_utf8(value)) metadata.emplace(key, value);
  }
  return metadata;
}

Result<void> replace_metadata(int fd, const Metadata& wanted) {
  const std::string list =
      call_until_it_fits([&](char* buffer, size_t size) { return ::flistxattr(fd, buffer, size); });
  for (const std::string& name : our_names(list)) {
    if (wanted.contains(name.substr(kAttributePrefix.size()))) continue;
    if (::fremovexattr(fd, name.c_str()) != 0 && errno != ENODATA &&
        !attributes_unsupported(errno)) {
      return fail_errno(errno, "remove metadata");
    }
  }
  for (const auto& [key, value] : wanted) {
    const std::string name = cat(kAttributePrefix, key);
    if (::fsetxattr(fd, name.c_str(), value.data(), value.size(), /*flags=*/0) != 0) {
      if (attributes_unsupported(errno)) return {};
      return fail_errno(errno, "set metadata");
    }
  }
  return {};
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/paths.h"

#include <vector>

#include "base/strings.h"

namespace alcove::agent {
namespace {

std::string_view without_trailing_slashes(std::string_view path) {
  while (path.size() > 1 && path.back() == '/') path.remove_suffix(1);
  return path;
}

}  // namespace

std::string clean_path(std::string_view absolute) {
  std::vector<std::string_view> kept;
  for (const std::string_view part : split(absolute, '/')) {
    if (part.empty() || part == ".") continue;
    if (part == "..") {
      if (!kept.empty()) kept.pop_back();
    } else {
      kept.push_back(part);
    }
  }
  if (kept.empty()) return "/";
  std::string out;
  out.reserve(absolute.size());
  for (const std::string_view part : kept) {
    out += '/';
    out += part;
  }
  return out;
}

Result<std::string> resolve_path(std::string_view path, const PathBase& base) {
  if (path.find('\0') != std::string_view::npos) {
    return fail(Code::kInvalidArgument, "path contains a NUL byte");
  }
  if (path.empty()) return base.default_directory ? *base.default_directory : base.home;
  if (path.front() == '/') return std::string(path);
  if (path == "~") return clean_path(base.home);
  if (path.front() == '~') {
    if (path[1] != '/') {
      return fail(Code::kInvalidArgument,
                  cat("path '", path, "': the home of another user cannot be used"));
    }
    path.remove_prefix(2);
  }
  return clean_path(cat(base.home, "/", path));
}

std::string base_name(std::string_view path) {
  path = without_trailing_slashes(path);
  if (path.empty() || path == "/") return "/";
  return std::string(path.substr(path.rfind('/') + 1));
}

std::string parent_path(std::string_view path) {
  path = without_trailing_slashes(path);
  const size_t slash = path.rfind('/');
  if (slash == std::string_view::npos) return "/";
  return std::string(without_trailing_slashes(path.substr(0, slash + 1)));
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/copy_path.h"

#include <algorithm>

#include "base/strings.h"

namespace alcove::cli {

CopyPath parse_copy_path(std::string_view text) {
  const size_t colon = text.find(':');
  const std::string_view id = text.substr(0, colon);
  const bool is_id =
      colon != std::string_view::npos && !id.empty() && std::ranges::all_of(id, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
      });
  if (!is_id) return {.sandbox_id = {}, .path = std::string(text)};
  return {.sandbox_id = std::string(id), .path = std::string(text.substr(colon + 1))};
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "." || name == ".." ? std::string() : std::string(name);
}

std::string join_path(std::string_view directory, std::string_view name) {
  if (directory.empty()) return std::string(name);
  return cat(directory, directory.ends_with('/') ? "" : "/", name);
}

bool is_safe_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string_view::npos &&
         name.find('\0') == std::string_view::npos;
}

}  // namespace alcove::cli

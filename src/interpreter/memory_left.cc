// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/memory_left.h"

#include <algorithm>
#include <string_view>

#include "agent/file_io.h"
#include "base/strings.h"

namespace alcove::interpreter {
namespace {

constexpr size_t kMaxFile = 64 * 1024;

std::optional<uint64_t> number_in(const std::string& path) {
  const auto text = agent::read_regular_file(path, kMaxFile);
  if (!text) return {};
  return parse_number<uint64_t>(trim(*text));
}

// What the system drops before it kills anybody.
uint64_t cached_files(const std::string& stat_path, std::string_view prefix) {
  const auto text = agent::read_regular_file(stat_path, kMaxFile);
  if (!text) return 0;
  uint64_t sum = 0;
  for (const std::string_view line : split(*text, '\n')) {
    const size_t space = line.find(' ');
    if (space == std::string_view::npos || !line.starts_with(prefix)) continue;
    const std::string_view name = line.substr(prefix.size(), space - prefix.size());
    if (name != "inactive_file" && name != "active_file") continue;
    sum += parse_number<uint64_t>(line.substr(space + 1)).value_or(0);
  }
  return sum;
}

std::optional<uint64_t> left(const std::string& limit_path, const std::string& used_path,
                             const std::string& stat_path, std::string_view stat_prefix) {
  const auto limit = number_in(limit_path);
  const auto used = number_in(used_path);
  // Version 1 says "no limit" with a number that no machine has.
  constexpr uint64_t kNoLimit = uint64_t{1} << 60;
  if (!limit || !used || *limit >= kNoLimit) return {};
  const uint64_t cached = std::min(*used, cached_files(stat_path, stat_prefix));
  const uint64_t needed = *used - cached;
  return *limit > needed ? *limit - needed : 0;
}

}  // namespace

std::optional<uint64_t> memory_left(const std::string& cgroups) {
  const std::string old = cgroups + "/memory/memory.";
  if (auto found = left(old + "limit_in_bytes", old + "usage_in_bytes", old + "stat", "total_")) {
    return found;
  }
  const std::string unified = cgroups + "/memory.";
  return left(unified + "max", unified + "current", unified + "stat", "");
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/process_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <memory>
#include <string_view>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::interpreter {
namespace {

constexpr size_t kMostRead = 64 * 1024;

std::string read_start(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return {};
  std::string text(kMostRead, '\0');
  const ssize_t count = ::read(fd.get(), text.data(), text.size());
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

}  // namespace

std::vector<ProcessEntry> list_processes() {
  std::vector<ProcessEntry> processes;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return processes;
  while (const dirent* entry = ::readdir(folder.get())) {
    const auto pid = parse_number<pid_t>(entry->d_name);
    if (!pid) continue;
    const std::string stat = read_start(cat("/proc/", *pid, "/stat"));
    // The name in the middle may hold anything; the last ")" ends it. Then: state, parent, group,
    // session.
    const size_t name_end = stat.rfind(") ");
    if (name_end == std::string::npos) continue;
    const auto fields = split(std::string_view(stat).substr(name_end + 2), ' ');
    if (fields.size() < 4) continue;
    const auto parent = parse_number<pid_t>(fields[1]);
    const auto session = parse_number<pid_t>(fields[3]);
    if (!parent || !session) continue;
    const bool ended = fields[0] == "Z" || fields[0] == "X";
    processes.push_back({.pid = *pid, .parent = *parent, .session = *session, .ended = ended});
  }
  return processes;
}

std::string process_arguments(pid_t pid) { return read_start(cat("/proc/", pid, "/cmdline")); }

}  // namespace alcove::interpreter

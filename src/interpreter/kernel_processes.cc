// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/kernel_processes.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "interpreter/process_list.h"

namespace alcove::interpreter {
namespace {

// When memory runs out kernels go before the interpreter and the agent.
constexpr std::string_view kOomScore = "200";
// More processes than any cell means to start.
constexpr size_t kFewEnough = 100;
// Of the sandbox's processes, this many are left for commands and for new kernels.
constexpr rlim_t kProcessesLeft = 256;

std::string read_line(const char* path) {
  const UniqueFd fd(::open(path, O_RDONLY | O_CLOEXEC));
  char text[32];
  const ssize_t count = fd.valid() ? ::read(fd.get(), text, sizeof text) : 0;
  return std::string(trim(std::string_view(text, count > 0 ? static_cast<size_t>(count) : 0)));
}

// One of the sandbox's numbers, whichever version of cgroups it has; nothing if it has none.
std::optional<rlim_t> pids_number(std::string_view name) {
  for (const char* folder : {"/sys/fs/cgroup/pids/", "/sys/fs/cgroup/"}) {
    if (const auto number = parse_number<rlim_t>(read_line(cat(folder, name).c_str()))) {
      return number;
    }
  }
  return {};
}

std::set<pid_t> descendants(const std::vector<ProcessEntry>& processes, pid_t root) {
  std::set<pid_t> found = {root};
  for (bool more = true; more;) {
    more = false;
    for (const ProcessEntry& process : processes) {
      if (found.contains(process.parent)) more = found.insert(process.pid).second || more;
    }
  }
  return found;
}

// The kernel, its session and its descendants.
std::set<pid_t> family(pid_t kernel) {
  const std::vector<ProcessEntry> processes = list_processes();
  std::set<pid_t> found = descendants(processes, kernel);
  for (const ProcessEntry& process : processes) {
    if (process.session == kernel) found.insert(process.pid);
  }
  return found;
}

}  // namespace

void make_kernel_give_way(pid_t pid) {
  const UniqueFd score(::open(cat("/proc/", pid, "/oom_score_adj").c_str(), O_WRONLY | O_CLOEXEC));
  if (score.valid()) (void)!::write(score.get(), kOomScore.data(), kOomScore.size());
  (void)::setpriority(PRIO_PROCESS, static_cast<id_t>(pid), 0);
  // Holds for root too, whose rights are those of the sandbox.
  if (const auto most = pids_number("pids.max"); most && *most > 2 * kProcessesLeft) {
    const rlimit processes{*most - kProcessesLeft, *most - kProcessesLeft};
    (void)::prlimit(pid, RLIMIT_NPROC, &processes, nullptr);
  }
}

bool is_fork_bomb(pid_t kernel) {
  if (const auto all = pids_number("pids.current"); all && *all <= kFewEnough) return false;
  // Counting takes long while hundreds of processes want a turn.
  ::kill(-kernel, SIGSTOP);
  const bool is_bomb = family(kernel).size() > kFewEnough;
  if (!is_bomb) ::kill(-kernel, SIGCONT);
  return is_bomb;
}

void kill_kernel(pid_t kernel) {
  ::kill(-kernel, SIGSTOP);
  // Before anything ends: orphans do not say whose children they were.
  std::set<pid_t> others = family(kernel);
  if (others.size() <= kFewEnough) others.clear();
  // The group in one step of the system's, which no fork escapes.
  ::kill(-kernel, SIGKILL);
  // Then those with groups of their own, until there are no new ones.
  std::set<pid_t> killed;
  constexpr int kRounds = 50;
  bool more = true;
  for (int round = 0; more && round < kRounds; ++round) {
    more = false;
    for (const ProcessEntry& process : list_processes()) {
      const bool other = others.contains(process.pid) || others.contains(process.parent);
      if (process.ended || !(other || process.session == kernel)) continue;
      if (other) others.insert(process.pid);
      if (!killed.insert(process.pid).second) continue;
      more = ::kill(process.pid, SIGKILL) == 0 || more;
    }
  }
}

}  // namespace alcove::interpreter

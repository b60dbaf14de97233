// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/machine_look.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/strings.h"
#include "jail/lean_root.h"
#include "sys/file_io.h"

namespace alcove::jail {
namespace {

Result<void> write_new_file(const std::string& path, std::string_view content) {
  ALCOVE_TRY_ASSIGN(const UniqueFd fd, sys::open_file(path, O_WRONLY | O_CREAT | O_TRUNC, 0444));
  if (::write(fd.get(), content.data(), content.size()) != static_cast<ssize_t>(content.size())) {
    return fail_errno(errno, cat("write ", path));
  }
  return {};
}

std::string meminfo_line(std::string_view name, uint64_t kilobytes) {
  const std::string number = std::to_string(kilobytes);
  std::string line = cat(name, ":");
  line.append(28 - std::min<size_t>(28, line.size() + number.size() + 3), ' ');
  return cat(line, number, " kB\n");
}

}  // namespace

std::string look_of_cpuinfo(std::string_view host_cpuinfo, uint32_t cpus) {
  std::string text;
  uint32_t processor = 0;
  while (processor < cpus && !host_cpuinfo.empty()) {
    const size_t end = host_cpuinfo.find("\n\n");
    const std::string_view block = host_cpuinfo.substr(0, end);
    for (const std::string_view line : split(block, '\n')) {
      const std::string_view name = trim(line.substr(0, line.find(':')));
      if (name == "siblings" || name == "cpu cores") {
        text += cat(line.substr(0, line.find(':')), ": ", cpus, "\n");
      } else if (!line.empty()) {
        text += cat(line, "\n");
      }
    }
    text += "\n";
    ++processor;
    host_cpuinfo = end == std::string_view::npos ? "" : host_cpuinfo.substr(end + 2);
  }
  return text;
}

std::string look_of_meminfo(uint64_t memory_bytes) {
  const uint64_t total = memory_bytes / 1024;
  // What the agent and the sandbox's kernel objects take.
  const uint64_t used = std::min<uint64_t>(total, 2048);
  std::string text;
  text += meminfo_line("MemTotal", total);
  text += meminfo_line("MemFree", total - used);
  text += meminfo_line("MemAvailable", total - used);
  for (const char* name :
       {"Buffers",      "Cached",         "SwapCached",   "Active",         "Inactive",
        "Active(anon)", "Inactive(anon)", "Active(file)", "Inactive(file)", "Unevictable",
        "Mlocked",      "SwapTotal",      "SwapFree",     "Dirty",          "Writeback",
        "AnonPages",    "Mapped",         "Shmem",        "KReclaimable",   "Slab",
        "SReclaimable", "SUnreclaim",     "KernelStack",  "PageTables",     "Bounce",
        "WritebackTmp"}) {
    text += meminfo_line(name, 0);
  }
  text += meminfo_line("CommitLimit", total / 2);
  text += meminfo_line("Committed_AS", used);
  return text;
}

std::string look_of_stat(uint32_t cpus, int64_t boot_time) {
  std::string text = "cpu  0 0 0 0 0 0 0 0 0 0\n";
  for (uint32_t cpu = 0; cpu < cpus; ++cpu) text += cat("cpu", cpu, " 0 0 0 0 0 0 0 0 0 0\n");
  return cat(text, "intr 0\nctxt 0\nbtime ", boot_time,
             "\nprocesses 1\nprocs_running 1\nprocs_blocked 0\nsoftirq 0 0 0 0 0 0 0 0 0 0 0\n");
}

std::string look_of_cpu_list(uint32_t cpus) {
  return cpus <= 1 ? "0\n" : cat("0-", cpus - 1, "\n");
}

Result<std::string> prepare_look(uint32_t cpus, uint64_t memory_bytes) {
  const std::string name = cat("/", cpus, "-", memory_bytes);
  const std::string dir = kLeanLookWritable + name;
  const std::string last_file = dir + "/cpus";
  if (::access(last_file.c_str(), F_OK) == 0) return kLeanLook + name;
  if (::mkdir(dir.c_str(), 0755) != 0 && errno != EEXIST) return fail_errno(errno, dir);
  ALCOVE_TRY_ASSIGN(const std::string cpuinfo, sys::read_file("/proc/cpuinfo"));
  ALCOVE_TRY(write_new_file(dir + "/cpuinfo", look_of_cpuinfo(cpuinfo, cpus)));
  ALCOVE_TRY(write_new_file(dir + "/meminfo", look_of_meminfo(memory_bytes)));
  ALCOVE_TRY(write_new_file(dir + "/loadavg", "0.00 0.00 0.00 1/1 1\n"));
  ALCOVE_TRY(write_new_file(last_file, look_of_cpu_list(cpus)));
  return kLeanLook + name;
}

}  // namespace alcove::jail

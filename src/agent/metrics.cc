// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/metrics.h"

#include <sys/statvfs.h>
#include <unistd.h>

#include <cmath>
#include <ctime>

#include "agent/file_io.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr size_t kMaxProcFile = 1u << 20;
constexpr uint64_t kMebibyte = 1u << 20;

// Two decimals, without the C library's floating point formatting.
std::string percent_text(double value) {
  const auto hundredths = static_cast<uint64_t>(std::lround(value * 100));
  const uint64_t rest = hundredths % 100;
  return cat(hundredths / 100, ".", rest < 10 ? "0" : "", rest);
}

}  // namespace

std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat) {
  const std::string_view line = proc_stat.substr(0, proc_stat.find('\n'));
  if (!line.starts_with("cpu ")) return {};
  CpuTimes times;
  size_t index = 0;
  for (const std::string_view field : split(line.substr(4), ' ')) {
    const auto value = parse_number<uint64_t>(field);
    if (!value) continue;
    // user nice system idle iowait irq softirq steal; guest time is part of user time.
    if (index < 8) times.total += *value;
    if (index == 3 || index == 4) times.idle += *value;
    ++index;
  }
  if (index < 5) return {};
  return times;
}

uint64_t parse_memory_field(std::string_view meminfo, std::string_view name) {
  for (const std::string_view line : split(meminfo, '\n')) {
    if (!line.starts_with(name) || line.substr(name.size(), 1) != ":") continue;
    const std::string_view value = trim(line.substr(name.size() + 1));
    return parse_number<uint64_t>(value.substr(0, value.find(' '))).value_or(0) * 1024;
  }
  return 0;
}

std::string MetricsSource::read() {
  double used_percent = 0;
  const auto now = parse_cpu_times(read_regular_file("/proc/stat", kMaxProcFile).value_or(""));
  if (now && previous_ && now->total > previous_->total && now->idle >= previous_->idle) {
    const auto total = static_cast<double>(now->total - previous_->total);
    const auto idle = static_cast<double>(now->idle - previous_->idle);
    used_percent = idle < total ? (total - idle) / total * 100 : 0;
  }
  previous_ = now;

  const std::string meminfo = read_regular_file("/proc/meminfo", kMaxProcFile).value_or("");
  const uint64_t total = parse_memory_field(meminfo, "MemTotal");
  const uint64_t available = parse_memory_field(meminfo, "MemAvailable");
  const uint64_t used = total > available ? total - available : 0;
  const uint64_t cache =
      parse_memory_field(meminfo, "Cached") + parse_memory_field(meminfo, "SReclaimable");

  struct statvfs disk{};
  (void)::statvfs("/", &disk);
  const uint64_t disk_total = uint64_t{disk.f_blocks} * disk.f_frsize;
  const uint64_t disk_used = disk_total - uint64_t{disk.f_bavail} * disk.f_frsize;
  return cat("{\"ts\":", std::time(nullptr), ",\"cpu_count\":", ::sysconf(_SC_NPROCESSORS_ONLN),
             ",\"cpu_used_pct\":", percent_text(used_percent), ",\"mem_total\":", total,
             ",\"mem_used\":", used, ",\"mem_cache\":", cache,
             ",\"mem_total_mib\":", total / kMebibyte, ",\"mem_used_mib\":", used / kMebibyte,
             ",\"disk_used\":", disk_used, ",\"disk_total\":", disk_total, "}");
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace alcove::agent {

// CPU time of the machine from the first line of /proc/stat, in ticks.
struct CpuTimes {
  uint64_t total = 0;
  uint64_t idle = 0;
};
std::optional<CpuTimes> parse_cpu_times(std::string_view proc_stat);

// Bytes of a field of /proc/meminfo; 0 if it is missing.
uint64_t parse_memory_field(std::string_view meminfo, std::string_view name);

// The JSON of GET /metrics. CPU use is that since the call before.
class MetricsSource {
 public:
  std::string read();

 private:
  std::optional<CpuTimes> previous_;
};

}  // namespace alcove::agent

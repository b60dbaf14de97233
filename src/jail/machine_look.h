// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace alcove::jail {

// The text of /proc files as a machine of the sandbox's size would show them. Programs size
// themselves by these. Written once; the load and memory use they tell are those of an idle
// machine.

// The first `cpus` processors of the host's text.
std::string look_of_cpuinfo(std::string_view host_cpuinfo, uint32_t cpus);
std::string look_of_meminfo(uint64_t memory_bytes);
std::string look_of_stat(uint32_t cpus, int64_t boot_time);
// "0" or "0-3".
std::string look_of_cpu_list(uint32_t cpus);

// Files for all sandboxes of this size, made at first use: cpuinfo, meminfo, loadavg, cpus.
// Returns their directory.
Result<std::string> prepare_look(uint32_t cpus, uint64_t memory_bytes);

}  // namespace alcove::jail

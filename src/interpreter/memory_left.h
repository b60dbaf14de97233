// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace alcove::interpreter {

// Bytes that programs of this sandbox can still have before one of them is killed for it, by the
// memory controller's files below `cgroups` (either version). Nothing if there is no limit.
std::optional<uint64_t> memory_left(const std::string& cgroups = "/sys/fs/cgroup");

}  // namespace alcove::interpreter

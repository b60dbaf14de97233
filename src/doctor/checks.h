// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "doctor/doctor.h"
#include "doctor/finding.h"
#include "doctor/system.h"

namespace alcove::doctor {

// Each check looks at one thing (or a family of settings) and says what it found.

Finding check_kernel(const System& system);
Finding check_privileges(const System& system);
Finding check_cgroups(const System& system);
Finding check_birth_in_cgroup(const System& system);
Finding check_namespaces(const System& system);
Finding check_overlay(const System& system);
Finding check_idmapped_mounts(const System& system, const Plan& plan);
Finding check_seccomp(const System& system);
Finding check_pidfd(const System& system);

Finding check_nftables(const System& system);
Finding check_queue(const System& system);
Finding check_resolvers(const System& system);

Finding check_helpers(const System& system);
Finding check_disk_limits(const System& system);
Finding check_debian_tools(const System& system);
Finding check_python_tools(const System& system);
Finding check_data_dir(const System& system, const Plan& plan);
Finding check_disk_space(const System& system, const Plan& plan);
Finding check_memory(const System& system);
Finding check_descriptors(const System& system);
Finding check_ports(const System& system, const Plan& plan);

// One finding per setting.
std::vector<Finding> check_sysctls(const System& system);

// How findings are written.
Finding ok(std::string_view name, std::string detail);
Finding warning(std::string_view name, std::string detail, std::string lost, std::string remedy);
Finding missing(std::string_view name, std::string detail, std::string lost, std::string remedy);

// The directory itself, or the nearest one above it that exists.
std::string existing_parent(const System& system, std::string directory);

}  // namespace alcove::doctor

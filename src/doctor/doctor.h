// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "doctor/finding.h"
#include "doctor/system.h"

namespace alcove::doctor {

// The server that is to run here.
struct Plan {
  struct Address {
    std::string address;
    uint16_t port = 0;
  };
  std::string data_dir;
  // The newest format of a data directory that this program reads.
  int newest_format = 1;
  std::vector<Address> listen;
};

// Checks every requirement.
std::vector<Finding> examine(const System& system, const Plan& plan);

// Examines, applies the fixes that were found and tells what they changed. A fix that fails stays
// a finding, with the reason.
std::vector<Finding> examine_and_fix(System& system, const Plan& plan);

// False if something is missing without which no sandbox runs.
bool is_usable(const std::vector<Finding>& findings);

}  // namespace alcove::doctor

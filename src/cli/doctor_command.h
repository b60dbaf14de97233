// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/run_command.h"
#include "doctor/doctor.h"

namespace alcove::cli {

struct DoctorOptions {
  doctor::Plan plan;
  // Raises settings of the kernel that are too low.
  bool fix = false;
  // Leaves out what was and is in order.
  bool quiet = false;
  Format format = Format::kText;
};

// Examines this machine and shows what it found; kFailure if no sandbox can run here.
Result<int> run_doctor(const DoctorOptions& options);

enum class Show { kAll, kProblems };
// For people: a line per finding, and below it what is lost and what to do.
std::string show_findings(const std::vector<doctor::Finding>& findings, Show show);

}  // namespace alcove::cli

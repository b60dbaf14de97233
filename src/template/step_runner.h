// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "sandbox/driver.h"

namespace alcove::templates {

// A line about what is being done, for people.
using Progress = std::function<void(std::string_view line)>;

struct StepJob {
  std::vector<std::string> steps;
  std::map<std::string, std::string> envs;
  // Topmost first.
  std::vector<std::string> layers;
  // Empty directories on one file system; after the run upper_dir holds what the steps changed,
  // owned by the jail's ids.
  std::string upper_dir;
  std::string work_dir;
  // The program alcove-step at a place that the driver can mount.
  std::string step_program;
  std::string hostname;
  // Certificates that the steps trust, at a place that the driver can mount; empty: the template's.
  std::string ca_bundle;
  std::chrono::seconds timeout = std::chrono::hours(1);
  // Looked at several times a second: when it is set, the run ends with kAborted.
  const std::atomic<bool>* canceled = nullptr;
};

// Runs the steps in a fresh jail. When it returns, the jail is gone. The error of a failed step
// names it and shows the end of its output.
Result<void> run_steps(sandbox::Driver& driver, const StepJob& job, const Progress& progress);

}  // namespace alcove::templates

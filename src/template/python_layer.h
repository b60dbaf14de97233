// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "base/result.h"
#include "template/recipe.h"
#include "template/step_runner.h"

namespace alcove::templates {

// The host's pip fetches exactly the files that the lock names into a directory that will be a
// jail's layer. Only wheels, and nothing is installed: no code of a package runs on the host. pip
// is used as this machine configures it: its index, proxy and certificates leave no trace.
Result<void> fetch_wheels(const PythonPackages& python, const std::string& layer_root, int lock_fd,
                          const Progress& progress, const std::atomic<bool>* canceled);

// Commands that install them offline, system-wide, in a jail that has the layer.
std::vector<std::string> python_install_steps(const PythonPackages& python);

}  // namespace alcove::templates

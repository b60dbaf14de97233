// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace alcove::interpreter {

// How an installed Jupyter kernel is started: a directory `<kernels>/<name>/` with a kernel.json.
struct JupyterKernelSpec {
  enum class InterruptMode { kSignal, kMessage };

  std::string name;  // of the directory
  std::string resource_dir;
  std::vector<std::string> argv;
  std::string language;  // as the spec spells it: "R", "python"
  std::map<std::string, std::string> env;
  InterruptMode interrupt_mode = InterruptMode::kSignal;
};

// The directories `.../kernels` in which Jupyter looks, most important first. `environment` is
// asked for JUPYTER_PATH, HOME, VIRTUAL_ENV and PATH (the prefix of a python3 there).
std::vector<std::string> jupyter_kernel_dirs(const std::map<std::string, std::string>& environment);

// Reads the text of a kernel.json.
Result<JupyterKernelSpec> parse_jupyter_kernel_spec(std::string_view text, std::string name,
                                                    std::string resource_dir);

// The kernel for a language of our protocol: the one whose directory has that name (any case),
// else the first one, by name, whose language is that. Broken specs are passed over. kNotFound if
// there is none.
Result<JupyterKernelSpec> find_jupyter_kernel(const std::vector<std::string>& dirs,
                                              std::string_view language);

// The command: argv with {connection_file} and {resource_dir} filled in.
std::vector<std::string> jupyter_kernel_command(const JupyterKernelSpec& spec,
                                                const std::string& connection_file);

}  // namespace alcove::interpreter

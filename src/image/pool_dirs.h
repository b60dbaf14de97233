// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "image/upper_pool.h"

namespace alcove::image {

// What the kinds of pool have in common: <dir>/<sandbox id>/{upper,work}.

// Refuses ids that could name something else than a directory of their own.
Result<void> check_pool_name(const SandboxId& id);
Upper upper_below(const std::string& dir, const SandboxId& id);
Result<void> make_upper_dirs(int sandbox_dir_fd);
Result<std::vector<SandboxId>> list_pool(const std::string& dir);
Result<PoolSpace> file_system_space(const std::string& dir);

}  // namespace alcove::image

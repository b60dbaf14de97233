// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace alcove {

// Makes sure that there is a key to start with, and that `env_file` (mode 0600) holds the settings
// that the official clients need, as NAME=value lines a shell can read. A key made earlier and
// still valid is kept.
Result<void> write_client_settings(store::Store& store, const std::string& env_file,
                                   const std::string& origin);

}  // namespace alcove

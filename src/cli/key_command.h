// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"

namespace alcove::cli {

// Makes a key for a team and prints it on stdout. Works beside a running server, which knows the
// key at once.
Result<void> create_key(const std::string& database, const std::string& team);

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <string>

namespace alcove::interpreter {

// R code for silent runs that sets environment variables and notes their old values in the
// kernel's own package, and that puts the old values back. Neither sees what the user has
// defined, nor leaves anything in the user's environment. Values may hold any bytes.
std::string r_code_to_set(const std::map<std::string, std::string>& variables);
std::string r_code_to_restore();

}  // namespace alcove::interpreter

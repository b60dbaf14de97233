// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "cli/run_command.h"

namespace alcove::cli {

// `alcove key ...`: works on the database itself, beside a running server or without one. Each
// returns the program's exit code.

struct NewKeyOptions {
  std::string database;
  std::string team;
  // For people: who or what it was made for.
  std::string name;
  Format format = Format::kText;
};
// Makes a key for a team and prints it. A running server knows it at once.
Result<int> create_key(const NewKeyOptions& options);

Result<int> list_keys(const std::string& database, Format format);

// Removes a key, named by its id or by the key itself. A running server refuses it within seconds.
Result<int> revoke_key(const std::string& database, const std::string& key);

}  // namespace alcove::cli

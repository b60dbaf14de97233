// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <span>
#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace alcove::store {

// One step of the tables' history. Once released a step is never changed: a later one corrects it.
struct Migration {
  // What it does, for error messages ("first tables").
  const char* name;
  Result<void> (*apply)(Database& database);
};

// All steps in order; the schema version is the number of steps that were applied.
std::span<const Migration> migrations();

// Brings the database to the newest version, each step in a transaction of its own, so that a
// crash leaves it between two versions and the next start goes on from there. Refuses, without
// writing, a database of a newer version (kFailedPrecondition) and a file that is not alcove's.
// `path` is for the messages.
Result<void> migrate(Database& database, std::span<const Migration> steps, const std::string& path);

}  // namespace alcove::store

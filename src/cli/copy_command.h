// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "cli/client_settings.h"
#include "cli/copy_path.h"
#include "cli/run_command.h"

namespace alcove::cli {

struct CopyOptions {
  // Exactly one of the two is in a sandbox.
  CopyPath from;
  CopyPath to;
  // Whom uploaded files belong to, and whose home relative paths start from; empty: the template's
  // own user.
  std::string user;
  Format format = Format::kText;
};

// Copies a file or a directory with everything below it, as `cp -r` does: into the target if that
// is a directory, else to that name. Permissions are kept. Links to files are copied as files;
// links to directories and special files are left out, which a warning says.
Result<int> copy_files(const ClientFlags& flags, const CopyOptions& options);

}  // namespace alcove::cli

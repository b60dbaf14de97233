// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/key_command.h"

#include <cstdio>
#include <filesystem>

#include "api/key_maker.h"
#include "base/clock.h"
#include "base/strings.h"
#include "store/store.h"

namespace alcove::cli {

Result<void> create_key(const std::string& database, const std::string& team) {
  std::error_code error;
  if (!std::filesystem::exists(database, error)) {
    return fail(Code::kNotFound, cat("there is no ", database,
                                     ": start the server once (`./dev up`) "
                                     "or name its --data-dir"));
  }
  ALCOVE_TRY_ASSIGN(const auto store, store::open_sqlite_store(database));
  ALCOVE_TRY_ASSIGN(const api::NewKey made,
                    api::make_key(*store, SystemClock(), team, "made by the command line"));
  std::printf("%s\n", made.secret.c_str());
  return {};
}

}  // namespace alcove::cli

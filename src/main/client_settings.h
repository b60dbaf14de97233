// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "base/result.h"
#include "store/store.h"

namespace alcove {

struct ClientSettingsFiles {
  std::string env_file;        // for clients that are given the domain
  std::string plain_env_file;  // for those that are given URLs, which would win over the domain
  std::string domain;          // "alcove.localhost:3000"
  std::string origin;          // "http://127.0.0.1:3000"
  // The local authority and a bundle that holds it; both empty if clients trust us anyway.
  std::string authority;
  std::string trust_bundle;
};

// Makes sure that there is a key to start with, and that both files (mode 0600) hold the settings
// that the official clients need, as NAME=value lines a shell can read. A key made earlier and
// still valid is kept.
Result<void> write_client_settings(store::Store& store, const ClientSettingsFiles& files);

}  // namespace alcove

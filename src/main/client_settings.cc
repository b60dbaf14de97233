// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "main/client_settings.h"

#include <fstream>
#include <optional>
#include <string>

#include "api/key_maker.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "main/data_dir.h"

namespace alcove {
namespace {

constexpr std::string_view kKeyName = "E2B_API_KEY=";

std::optional<std::string> key_in(const std::string& env_file) {
  std::ifstream file(env_file);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kKeyName)) return line.substr(kKeyName.size());
  }
  return {};
}

Result<bool> is_valid(store::Store& store, const std::string& key) {
  ALCOVE_TRY_ASSIGN(const auto keys, store.list_keys());
  const std::string hash = sha256_hex(key);
  for (const store::ApiKey& known : keys) {
    if (known.sha256_hex == hash) return true;
  }
  return false;
}

}  // namespace

Result<void> write_client_settings(store::Store& store, const std::string& env_file,
                                   const std::string& origin) {
  std::optional<std::string> key = key_in(env_file);
  if (key) {
    ALCOVE_TRY_ASSIGN(const bool valid, is_valid(store, *key));
    if (!valid) key.reset();
  }
  if (!key) {
    ALCOVE_TRY_ASSIGN(api::NewKey made,
                      api::make_key(store, SystemClock(), api::kDefaultTeam, "first key"));
    key = std::move(made.secret);
  }
  return write_file_atomically(env_file,
                               cat(kKeyName, *key, "\nE2B_API_URL=", origin, "\nE2B_SANDBOX_URL=",
                                   origin, "\nNO_PROXY=127.0.0.1,localhost,::1\n"),
                               0600);
}

}  // namespace alcove

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
constexpr std::string_view kOurHosts = "127.0.0.1,localhost,::1";

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

// Both spellings, because programs differ in which they ask, with the hosts that the reader's shell
// names already behind ours. Whoever takes the lines as they are finds ours, and one odd name.
std::string no_proxy_lines(std::string_view hosts) {
  return cat("NO_PROXY=", hosts, ",${NO_PROXY-${no_proxy-}}\n",  //
             "no_proxy=", hosts, ",${no_proxy-${NO_PROXY#", hosts, ",}}\n");
}

}  // namespace

Result<void> write_client_settings(store::Store& store, const ClientSettingsFiles& files) {
  std::optional<std::string> key = key_in(files.env_file);
  if (key) {
    ALCOVE_TRY_ASSIGN(const bool valid, is_valid(store, *key));
    if (!valid) key.reset();
  }
  if (!key) {
    ALCOVE_TRY_ASSIGN(api::NewKey made,
                      api::make_key(store, SystemClock(), api::kDefaultTeam, "first key"));
    key = std::move(made.secret);
  }
  const std::string name = files.domain.substr(0, files.domain.find(':'));
  std::string by_domain = cat(kKeyName, *key, "\nE2B_DOMAIN=", files.domain, "\n",
                              no_proxy_lines(cat(kOurHosts, ",.", name)));
  if (!files.authority.empty()) {
    by_domain +=
        cat("NODE_EXTRA_CA_CERTS=", files.authority, "\nSSL_CERT_FILE=", files.trust_bundle, "\n");
  }
  ALCOVE_TRY(write_file_atomically(files.env_file, by_domain, 0600));
  return write_file_atomically(
      files.plain_env_file,
      cat(kKeyName, *key, "\nE2B_API_URL=", files.origin, "\nE2B_SANDBOX_URL=", files.origin, "\n",
          no_proxy_lines(kOurHosts)),
      0600);
}

}  // namespace alcove

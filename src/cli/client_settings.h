// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/result.h"

namespace alcove::cli {

// What the command line says about the server to talk to.
struct ClientFlags {
  std::optional<std::string> url;
  std::optional<std::string> api_key;
  std::optional<std::string> data_dir;
};

// Where a server is and who we are to it.
struct ClientSettings {
  std::string api_url;
  std::string sandbox_url;
  std::string api_key;
};

// The value of an environment variable; nothing if unset or empty.
using Environment = std::function<std::optional<std::string>(const char* name)>;
std::optional<std::string> process_environment(const char* name);

// /var/lib/alcove unless ALCOVE_DATA names another.
std::string default_data_dir(const Environment& environment);

// Each of URL and key from the first that has it: its flag; `<data dir>/env-plain` of a --data-dir
// that was given; E2B_API_URL (with E2B_SANDBOX_URL) or E2B_DOMAIN, and E2B_API_KEY;
// `<default data dir>/env-plain`. The key
// of a file goes to that file's server only. The error says what to set.
Result<ClientSettings> find_client_settings(const ClientFlags& flags,
                                            const Environment& environment);

}  // namespace alcove::cli

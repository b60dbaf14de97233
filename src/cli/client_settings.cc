// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/client_settings.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>

#include "base/strings.h"

namespace alcove::cli {
namespace {

using Variables = std::map<std::string, std::string>;

// NAME=value lines, as the server writes them.
Result<Variables> read_env_file(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  if (!file) return fail_errno(errno == 0 ? EIO : errno, cat("read ", path));
  Variables found;
  for (std::string line; std::getline(file, line);) {
    const size_t equals = line.find('=');
    if (equals != std::string::npos) found[line.substr(0, equals)] = line.substr(equals + 1);
  }
  return found;
}

Variables from_environment(const Environment& environment) {
  Variables found;
  for (const char* name : {"E2B_API_URL", "E2B_SANDBOX_URL", "E2B_API_KEY", "E2B_DOMAIN"}) {
    if (auto value = environment(name)) found[name] = std::move(*value);
  }
  return found;
}

// The server's own settings in plain HTTP; servers before TLS wrote only `env`.
Result<Variables> read_data_dir(const std::string& data_dir) {
  auto plain = read_env_file(data_dir + "/env-plain");
  if (plain) return plain;
  return read_env_file(data_dir + "/env");
}

// Where a domain's API is. One below `localhost` is this machine's, which answers in plain HTTP on
// the same port.
std::string url_of_domain(std::string_view domain) {
  const std::string_view name = domain.substr(0, domain.find(':'));
  if (!name.ends_with(".localhost")) return cat("https://api.", domain);
  return cat("http://localhost", domain.substr(name.size()));
}

// Whom a key may be shown to: the environment is the user's own word, a file speaks of one server.
enum class KeyScope { kAnyServer, kThatServer };

// Takes what is still missing.
void complete(ClientSettings& settings, const Variables& source, KeyScope scope) {
  const auto value = [&](const char* name) {
    const auto found = source.find(name);
    return found == source.end() ? std::string() : found->second;
  };
  if (settings.api_url.empty()) {
    settings.api_url = value("E2B_API_URL");
    settings.sandbox_url = value("E2B_SANDBOX_URL");
    if (const std::string domain = value("E2B_DOMAIN");
        settings.api_url.empty() && !domain.empty()) {
      settings.api_url = url_of_domain(domain);
    }
    if (settings.sandbox_url.empty()) settings.sandbox_url = settings.api_url;
  }
  const bool may_have_key =
      scope == KeyScope::kAnyServer || settings.api_url == value("E2B_API_URL");
  if (settings.api_key.empty() && may_have_key) settings.api_key = value("E2B_API_KEY");
}

bool is_complete(const ClientSettings& settings) {
  return !settings.api_url.empty() && !settings.api_key.empty();
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') return {};
  return value;
}

std::string default_data_dir(const Environment& environment) {
  return environment("ALCOVE_DATA").value_or("/var/lib/alcove");
}

Result<ClientSettings> find_client_settings(const ClientFlags& flags,
                                            const Environment& environment) {
  ClientSettings settings{.api_url = flags.url.value_or(""),
                          .sandbox_url = flags.url.value_or(""),
                          .api_key = flags.api_key.value_or("")};
  if (flags.data_dir && !is_complete(settings)) {
    ALCOVE_TRY_ASSIGN(const Variables file, read_data_dir(*flags.data_dir));
    complete(settings, file, KeyScope::kThatServer);
  }
  complete(settings, from_environment(environment), KeyScope::kAnyServer);
  if (is_complete(settings)) return settings;

  const std::string path = default_data_dir(environment) + "/env";
  const auto file = read_data_dir(default_data_dir(environment));
  if (file) complete(settings, *file, KeyScope::kThatServer);
  if (is_complete(settings)) return settings;
  const char* missing = settings.api_url.empty() ? "the server's address" : "an API key";
  const char* names =
      settings.api_url.empty() ? "--url or E2B_API_URL" : "--api-key or E2B_API_KEY";
  return fail(Code::kNotFound,
              cat("no setting names ", missing, ", and ", path,
                  file ? " has none for it" : cat(" cannot be read (", file.error().message(), ")"),
                  ": give ", names, ", or start a server on this machine (`./dev up --detach`)"));
}

}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/key_command.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/key_maker.h"
#include "base/clock.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "base/time_format.h"
#include "cli/table.h"
#include "cli/units.h"
#include "store/store.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;

Result<std::unique_ptr<store::Store>> open_store(const std::string& database) {
  std::error_code error;
  if (!std::filesystem::exists(database, error)) {
    return fail(Code::kNotFound, cat("there is no ", database,
                                     ": start the server once (`./dev up`) "
                                     "or name its --data-dir"));
  }
  return store::open_sqlite_store(database);
}

std::string mask(const store::ApiKey& key) {
  return cat("e2b_", key.mask_prefix, "...", key.mask_suffix);
}

}  // namespace

Result<int> create_key(const NewKeyOptions& options) {
  ALCOVE_TRY_ASSIGN(const auto store, open_store(options.database));
  ALCOVE_TRY_ASSIGN(const api::NewKey made,
                    api::make_key(*store, SystemClock(), options.team, options.name));
  if (options.format == Format::kText) {
    ALCOVE_TRY(print(made.secret + "\n"));
  } else {
    ALCOVE_TRY(print_json(json::object{{"key", made.secret},
                                       {"id", made.record.id.str()},
                                       {"team", made.team.name},
                                       {"name", made.record.name}}));
  }
  return kSuccess;
}

Result<int> list_keys(const std::string& database, Format format) {
  ALCOVE_TRY_ASSIGN(const auto store, open_store(database));
  ALCOVE_TRY_ASSIGN(const auto keys, store->list_keys());
  ALCOVE_TRY_ASSIGN(const auto teams, store->list_teams());
  std::map<std::string, std::string> team_names;
  for (const store::Team& team : teams) team_names[team.id.str()] = team.name;
  Table table({"ID", "TEAM", "KEY", "NAME", "CREATED"});
  json::array list;
  for (const store::ApiKey& key : keys) {
    const std::string& team = team_names[key.team.str()];
    const std::string created = format_rfc3339(key.created_at);
    table.add({key.id.str(), team, mask(key), key.name, format_when(created, SystemClock().now())});
    list.push_back(json::object{{"id", key.id.str()},
                                {"team", team},
                                {"mask", mask(key)},
                                {"name", key.name},
                                {"createdAt", created}});
  }
  if (format == Format::kJson) {
    ALCOVE_TRY(print_json(list));
  } else {
    ALCOVE_TRY(print(table.text()));
  }
  return kSuccess;
}

Result<int> revoke_key(const std::string& database, const std::string& key) {
  ALCOVE_TRY_ASSIGN(const auto store, open_store(database));
  ALCOVE_TRY_ASSIGN(const auto keys, store->list_keys());
  const std::string hash = sha256_hex(key);
  const auto found = std::ranges::find_if(keys, [&](const store::ApiKey& known) {
    return known.id.str() == key || known.sha256_hex == hash;
  });
  if (found == keys.end()) {
    return fail(Code::kNotFound, "no key has that id; `alcove key ls` lists them");
  }
  ALCOVE_TRY(store->remove_key(found->id));
  ALCOVE_TRY(print(found->id.str() + "\n"));
  return kSuccess;
}

}  // namespace alcove::cli

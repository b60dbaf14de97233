// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/key_maker.h"

#include <optional>
#include <utility>

#include "base/ids.h"
#include "base/sha256.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

// Older clients accept only this form of a key: `e2b_` and lower-case hex.
constexpr std::string_view kPrefix = "e2b_";
constexpr size_t kRandomBytes = 20;
constexpr size_t kMaskPrefix = 2;
constexpr size_t kMaskSuffix = 4;

Result<void> check_team_name(std::string_view name) {
  const bool valid =
      !name.empty() && name.size() <= 63 &&
      name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_") == std::string_view::npos;
  if (valid) return {};
  return fail(Code::kInvalidArgument,
              cat("'", name, "' cannot be a team's name: use 1 to 63 of a-z, 0-9, '-' and '_'"));
}

Result<store::Team> find_or_make_team(store::Store& store, const Clock& clock,
                                      std::string_view name) {
  ALCOVE_TRY_ASSIGN(std::optional<store::Team> found, store.find_team_by_name(name));
  if (found) return *std::move(found);
  store::Team team{.id = TeamId(make_uuid()), .name = std::string(name), .created_at = clock.now()};
  auto put = store.put_team(team);
  if (put) return team;
  if (put.error().code() != Code::kAlreadyExists) return fail(std::move(put).error());
  // Another process made it in between.
  ALCOVE_TRY_ASSIGN(found, store.find_team_by_name(name));
  if (!found) return fail(std::move(put).error());
  return *std::move(found);
}

}  // namespace

Result<NewKey> make_key(store::Store& store, const Clock& clock, std::string_view team_name,
                        std::string_view key_name) {
  ALCOVE_TRY(check_team_name(team_name));
  ALCOVE_TRY_ASSIGN(store::Team team, find_or_make_team(store, clock, team_name));
  const std::string digits = random_hex(kRandomBytes);
  NewKey made;
  made.secret = cat(kPrefix, digits);
  made.record = store::ApiKey{.id = KeyId(make_uuid()),
                              .team = team.id,
                              .name = std::string(key_name),
                              .sha256_hex = sha256_hex(made.secret),
                              .mask_prefix = digits.substr(0, kMaskPrefix),
                              .mask_suffix = digits.substr(digits.size() - kMaskSuffix),
                              .created_at = clock.now()};
  made.team = std::move(team);
  ALCOVE_TRY(store.put_key(made.record));
  return made;
}

}  // namespace alcove::api

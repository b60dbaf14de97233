// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace alcove::api {

inline constexpr std::string_view kDefaultTeam = "default";

struct NewKey {
  // "e2b_" + 40 hex digits. Shown once: the store keeps only its hash.
  std::string secret;
  store::ApiKey record;
  store::Team team;
};

// Makes a key for the team of that name, and the team too if there is none. Team names are the
// namespaces of templates: 1 to 63 of [a-z0-9_-], else kInvalidArgument. `key_name` is for people.
// Durable when it returns; blocks.
Result<NewKey> make_key(store::Store& store, const Clock& clock, std::string_view team_name,
                        std::string_view key_name);

}  // namespace alcove::api

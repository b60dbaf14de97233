// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/kills_under_way.h"

#include <utility>

namespace alcove::api {

KillsUnderWay::Mark::Mark(KillsUnderWay& kills, SandboxId id, const TeamId& team)
    : kills_(kills), id_(std::move(id)) {
  const std::lock_guard lock(kills_.mutex_);
  Entry& entry = kills_.entries_[id_];
  entry.team = team;
  ++entry.count;
}

KillsUnderWay::Mark::~Mark() {
  const std::lock_guard lock(kills_.mutex_);
  const auto found = kills_.entries_.find(id_);
  if (--found->second.count == 0) kills_.entries_.erase(found);
}

bool KillsUnderWay::contains(const SandboxId& id, const TeamId& team) const {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(id);
  return found != entries_.end() && found->second.team == team;
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/ids.h"
#include "base/result.h"
#include "net/blocking_pool.h"
#include "net/task.h"
#include "store/store.h"

namespace alcove::api {

// Who calls: what an API key stands for.
struct Principal {
  TeamId team;
  std::string team_name;
  KeyId key;
};

// All API keys in memory, by their hash. A key that is not there is looked for in the store before
// it is refused, so one that `alcove key create` has just made works at once. Such readings are at
// least `min_interval` apart: further callers with unknown keys wait for the next one. A key
// removed from the store stops working within `max_age`. Thread-safe.
class KeyRing {
 public:
  struct Options {
    std::chrono::milliseconds min_interval{200};
    std::chrono::milliseconds max_age{5000};
  };

  // Both outlive the ring, and the pool runs its last job before the store goes.
  KeyRing(store::Store& store, net::BlockingPool& pool);
  KeyRing(store::Store& store, net::BlockingPool& pool, Options options);

  // Reads the store. Blocks: for the start of the server.
  Result<void> load();

  // Nothing if no team has this key.
  Task<Result<std::optional<Principal>>> authenticate(std::string key);

 private:
  struct State;
  Task<Result<void>> load_since(std::chrono::steady_clock::time_point since);

  std::shared_ptr<State> state_;
  net::BlockingPool& pool_;
  Options options_;
};

}  // namespace alcove::api

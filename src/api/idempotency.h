// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/errors.h"
#include "api/settings.h"
#include "base/clock.h"
#include "base/ids.h"
#include "http/headers.h"
#include "http/message.h"
#include "net/blocking_pool.h"
#include "net/task.h"
#include "store/store.h"

namespace alcove::api {

// The Idempotency-Key of a request, nothing if it has none; 400 for a malformed one.
ApiResult<std::optional<std::string>> read_idempotency_key(const http::Headers& headers);

// What a create asks for: two with the same fingerprint are the same request. `route` counts
// because the defaults of the fields depend on it.
std::string create_fingerprint(std::string_view route, std::string_view body);

// The answer to a create that made this sandbox.
http::Response created(const store::Sandbox& record, const Settings& settings);

// For the start, before the sandboxes of an earlier server are looked at: of creates that it was
// cut short in, those whose sandbox is recorded get their answer, and those that left nothing free
// their key. Blocks.
Result<void> settle_interrupted_creates(store::Store& store, const Settings& settings);

// Creates that carry a key are carried out once: a repeat within a day gets the first one's answer.
// The store keeps the answers; which creates are under way is known only here, so a record without
// an answer that is not under way is one whose end the store did not take. Thread-safe.
class KeyedCreates {
 public:
  // All of it outlives the object; jobs on the pool use the store.
  KeyedCreates(store::Store& store, net::BlockingPool& pool, const Clock& clock)
      : store_(store), pool_(pool), clock_(clock) {}

  // Runs `create` if the key is new, with the id that its sandbox is to have. Its 201 is kept; any
  // other answer means that nothing was made, and frees the key. If it throws, the outcome stays
  // unknown until the next start.
  Task<http::Response> answer(TeamId team, std::string key, std::string fingerprint,
                              std::function<Task<http::Response>(SandboxId)> create);

 private:
  // Team and key.
  using Id = std::pair<TeamId, std::string>;
  class Mark;

  Task<void> settle(const Id& id, const http::Response& response);

  store::Store& store_;
  net::BlockingPool& pool_;
  const Clock& clock_;
  std::mutex mutex_;
  // The fingerprints of the creates that are under way.
  std::map<Id, std::string> under_way_;
};

}  // namespace alcove::api

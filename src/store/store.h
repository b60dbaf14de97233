// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/records.h"

namespace alcove::store {

// Durable records. A call that returns success has its change on disk (fsync). Blocks: call it on
// a blocking pool. Thread-safe.
class Store {
 public:
  virtual ~Store() = default;

  // A put makes the record or replaces the one with the same id. Removing what is not there is
  // success. Lists come in the order of creation.

  // kAlreadyExists if another team has the name.
  virtual Result<void> put_team(const Team& team) = 0;
  virtual Result<std::optional<Team>> find_team_by_name(std::string_view name) = 0;
  virtual Result<std::vector<Team>> list_teams() = 0;

  // kFailedPrecondition if the team does not exist, kAlreadyExists if another key has the hash.
  virtual Result<void> put_key(const ApiKey& key) = 0;
  virtual Result<std::vector<ApiKey>> list_keys() = 0;
  virtual Result<void> remove_key(const KeyId& id) = 0;

  // kAlreadyExists if another template of the same team has the name.
  virtual Result<void> put_template(const Template& record) = 0;
  virtual Result<std::vector<Template>> list_templates() = 0;

  virtual Result<void> put_sandbox(const Sandbox& record) = 0;
  // kNotFound if there is no such sandbox.
  virtual Result<void> set_sandbox_end(const SandboxId& id, WallTime end_at) = 0;
  virtual Result<std::vector<Sandbox>> list_sandboxes() = 0;

  // Removes the sandbox, if it is there, and keeps this instead, in one step.
  virtual Result<void> end_sandbox(const EndedSandbox& record) = 0;
  virtual Result<std::optional<EndedSandbox>> find_ended_sandbox(const SandboxId& id) = 0;
  // Forgets those that ended before that time, and the oldest of the others while all logs
  // together are larger than `max_bytes`. Other calls get their turn in between.
  virtual Result<void> forget_ended_sandboxes(WallTime before, uint64_t max_bytes) = 0;

  // Forgets every keyed create that began before `forget_before`, then claims the record's team and
  // key. Nothing returned: they were free, and the record is kept. Otherwise the record that has
  // them, unchanged.
  virtual Result<std::optional<KeyedCreate>> begin_keyed_create(const KeyedCreate& record,
                                                                WallTime forget_before) = 0;
  // In no order.
  virtual Result<std::vector<KeyedCreate>> list_unanswered_creates() = 0;
  // kNotFound if it was not begun.
  virtual Result<void> finish_keyed_create(const TeamId& team, std::string_view key,
                                           std::string_view answer) = 0;
  // Frees the key of a create that made nothing. An answered one stays.
  virtual Result<void> release_keyed_create(const TeamId& team, std::string_view key) = 0;

  // Small facts about the installation ("agent.current", ...).
  virtual Result<void> put_setting(std::string_view name, std::string_view value) = 0;
  virtual Result<std::optional<std::string>> find_setting(std::string_view name) = 0;
};

// SQLite in `path` (WAL, synchronous FULL). Makes or migrates the tables; a database written by a
// newer version is refused with kFailedPrecondition and a text that names both versions.
Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path);

}  // namespace alcove::store

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "store/store.h"

namespace alcove::store::testing {

// A store that forgets everything with the process; store_contract_test holds it to the same
// promises as SQLite. Thread-safe.
class MemoryStore final : public Store {
 public:
  // Called at the start of every call with its name ("put_key"); an error it returns is the
  // call's answer. Set it before other threads use the store.
  std::function<Result<void>(std::string_view call)> before_call;

  Result<void> put_team(const Team& team) override {
    ALCOVE_TRY(begin("put_team"));
    const std::lock_guard lock(mutex_);
    for (const auto& [id, other] : teams_) {
      if (other.name == team.name && id != team.id) {
        return fail(Code::kAlreadyExists, "team name " + team.name + " is taken");
      }
    }
    const auto [at, fresh] = teams_.emplace(team.id, team);
    at->second.name = team.name;
    return {};
  }

  Result<std::optional<Team>> find_team_by_name(std::string_view name) override {
    ALCOVE_TRY(begin("find_team_by_name"));
    const std::lock_guard lock(mutex_);
    for (const auto& [id, team] : teams_) {
      if (team.name == name) return team;
    }
    return std::nullopt;
  }

  Result<std::vector<Team>> list_teams() override {
    ALCOVE_TRY(begin("list_teams"));
    return sorted(teams_, &Team::created_at);
  }

  Result<void> put_key(const ApiKey& key) override {
    ALCOVE_TRY(begin("put_key"));
    const std::lock_guard lock(mutex_);
    if (!teams_.contains(key.team)) return fail(Code::kFailedPrecondition, "no such team");
    for (const auto& [id, other] : keys_) {
      if (other.sha256_hex == key.sha256_hex && id != key.id) {
        return fail(Code::kAlreadyExists, "the key exists");
      }
    }
    const auto [at, fresh] = keys_.emplace(key.id, key);
    const WallTime created_at = at->second.created_at;
    at->second = key;
    at->second.created_at = created_at;
    return {};
  }

  Result<std::vector<ApiKey>> list_keys() override {
    ALCOVE_TRY(begin("list_keys"));
    return sorted(keys_, &ApiKey::created_at);
  }

  Result<void> remove_key(const KeyId& id) override {
    ALCOVE_TRY(begin("remove_key"));
    const std::lock_guard lock(mutex_);
    keys_.erase(id);
    return {};
  }

  Result<void> put_template(const Template& record) override {
    ALCOVE_TRY(begin("put_template"));
    const std::lock_guard lock(mutex_);
    for (const auto& [id, other] : templates_) {
      if (other.name == record.name && other.team == record.team && id != record.id) {
        return fail(Code::kAlreadyExists, "template name " + record.name + " is taken");
      }
    }
    const auto [at, fresh] = templates_.emplace(record.id, record);
    WallTime created_at = at->second.created_at;
    if (fresh && created_at == WallTime{}) created_at = record.updated_at;
    at->second = record;
    at->second.created_at = created_at;
    return {};
  }

  Result<std::vector<Template>> list_templates() override {
    ALCOVE_TRY(begin("list_templates"));
    return sorted(templates_, &Template::created_at);
  }

  Result<void> put_sandbox(const Sandbox& record) override {
    ALCOVE_TRY(begin("put_sandbox"));
    const std::lock_guard lock(mutex_);
    sandboxes_[record.id] = record;
    return {};
  }

  Result<void> set_sandbox_end(const SandboxId& id, WallTime end_at) override {
    ALCOVE_TRY(begin("set_sandbox_end"));
    const std::lock_guard lock(mutex_);
    const auto found = sandboxes_.find(id);
    if (found == sandboxes_.end()) return fail(Code::kNotFound, "no such sandbox");
    found->second.end_at = end_at;
    return {};
  }

  Result<std::vector<Sandbox>> list_sandboxes() override {
    ALCOVE_TRY(begin("list_sandboxes"));
    return sorted(sandboxes_, &Sandbox::started_at);
  }

  Result<void> end_sandbox(const EndedSandbox& record) override {
    ALCOVE_TRY(begin("end_sandbox"));
    const std::lock_guard lock(mutex_);
    sandboxes_.erase(record.id);
    ended_[record.id] = record;
    return {};
  }

  Result<std::optional<EndedSandbox>> find_ended_sandbox(const SandboxId& id) override {
    ALCOVE_TRY(begin("find_ended_sandbox"));
    const std::lock_guard lock(mutex_);
    const auto found = ended_.find(id);
    if (found == ended_.end()) return std::nullopt;
    return found->second;
  }

  Result<void> forget_ended_sandboxes(WallTime before, uint64_t max_bytes) override {
    ALCOVE_TRY(begin("forget_ended_sandboxes"));
    uint64_t bytes = 0;
    const std::vector<EndedSandbox> all = sorted(ended_, &EndedSandbox::ended_at);
    for (const EndedSandbox& record : all) bytes += record.log.size();
    const std::lock_guard lock(mutex_);
    for (const EndedSandbox& record : all) {
      if (record.ended_at >= before && bytes <= max_bytes) break;
      bytes -= record.log.size();
      ended_.erase(record.id);
    }
    return {};
  }

  Result<std::optional<KeyedCreate>> begin_keyed_create(const KeyedCreate& record,
                                                        WallTime forget_before) override {
    ALCOVE_TRY(begin("begin_keyed_create"));
    const std::lock_guard lock(mutex_);
    std::erase_if(keyed_creates_,
                  [&](const auto& entry) { return entry.second.begun_at < forget_before; });
    const auto [at, fresh] = keyed_creates_.emplace(std::pair(record.team, record.key), record);
    if (fresh) return std::nullopt;
    return at->second;
  }

  Result<std::vector<KeyedCreate>> list_unanswered_creates() override {
    ALCOVE_TRY(begin("list_unanswered_creates"));
    const std::lock_guard lock(mutex_);
    std::vector<KeyedCreate> records;
    for (const auto& [id, record] : keyed_creates_) {
      if (!record.answer) records.push_back(record);
    }
    return records;
  }

  Result<void> finish_keyed_create(const TeamId& team, std::string_view key,
                                   std::string_view answer) override {
    ALCOVE_TRY(begin("finish_keyed_create"));
    const std::lock_guard lock(mutex_);
    const auto found = keyed_creates_.find(std::pair(team, std::string(key)));
    if (found == keyed_creates_.end()) return fail(Code::kNotFound, "no such keyed create");
    found->second.answer = answer;
    return {};
  }

  Result<void> release_keyed_create(const TeamId& team, std::string_view key) override {
    ALCOVE_TRY(begin("release_keyed_create"));
    const std::lock_guard lock(mutex_);
    const auto found = keyed_creates_.find(std::pair(team, std::string(key)));
    if (found != keyed_creates_.end() && !found->second.answer) keyed_creates_.erase(found);
    return {};
  }

  Result<void> put_setting(std::string_view name, std::string_view value) override {
    ALCOVE_TRY(begin("put_setting"));
    const std::lock_guard lock(mutex_);
    settings_[std::string(name)] = value;
    return {};
  }

  Result<std::optional<std::string>> find_setting(std::string_view name) override {
    ALCOVE_TRY(begin("find_setting"));
    const std::lock_guard lock(mutex_);
    const auto found = settings_.find(std::string(name));
    if (found == settings_.end()) return std::nullopt;
    return found->second;
  }

 private:
  Result<void> begin(std::string_view call) {
    return before_call ? before_call(call) : Result<void>{};
  }

  template <typename Id, typename Record>
  std::vector<Record> sorted(const std::map<Id, Record>& records, WallTime Record::* time) {
    const std::lock_guard lock(mutex_);
    std::vector<Record> all;
    for (const auto& [id, record] : records) all.push_back(record);
    std::sort(all.begin(), all.end(), [time](const Record& a, const Record& b) {
      return std::tie(a.*time, a.id) < std::tie(b.*time, b.id);
    });
    return all;
  }

  std::mutex mutex_;
  std::map<TeamId, Team> teams_;
  std::map<KeyId, ApiKey> keys_;
  std::map<TemplateId, Template> templates_;
  std::map<SandboxId, Sandbox> sandboxes_;
  std::map<SandboxId, EndedSandbox> ended_;
  std::map<std::pair<TeamId, std::string>, KeyedCreate> keyed_creates_;
  std::map<std::string, std::string> settings_;
};

}  // namespace alcove::store::testing

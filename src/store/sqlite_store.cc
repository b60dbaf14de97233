// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <mutex>
#include <utility>

#include "store/migrations.h"
#include "store/row_codec.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace alcove::store {
namespace {

Result<Template> read_template(const Statement& row) {
  Template record;
  record.id = TemplateId(row.text(0));
  record.name = row.text(1);
  ALCOVE_TRY_ASSIGN(record.aliases, list_from_column(row.text(2)));
  record.build = BuildId(row.text(3));
  record.build_hash = row.text(4);
  record.build_json = row.text(5);
  record.team = TeamId(row.text(6));
  record.created_at = time_from_column(row.number(7));
  record.updated_at = time_from_column(row.number(8));
  return record;
}

Result<Sandbox> read_sandbox(const Statement& row) {
  Sandbox record;
  record.id = SandboxId(row.text(0));
  record.team = TeamId(row.text(1));
  record.template_id = TemplateId(row.text(2));
  record.template_alias = row.text(3);
  record.build = BuildId(row.text(4));
  record.build_hash = row.text(5);
  record.started_at = time_from_column(row.number(6));
  record.end_at = time_from_column(row.number(7));
  record.vcpu_count = static_cast<uint32_t>(row.number(8));
  record.memory_bytes = static_cast<uint64_t>(row.number(9));
  record.disk_bytes = static_cast<uint64_t>(row.number(10));
  ALCOVE_TRY_ASSIGN(record.metadata, map_from_column(row.text(11)));
  record.secure = row.number(12) != 0;
  record.envd_token = row.text(13);
  record.traffic_token = row.text(14);
  if (const auto allowed = row.optional_number(15)) record.allow_internet_access = *allowed != 0;
  record.network_json = row.text(16);
  record.mcp_json = row.text(17);
  record.driver = row.text(18);
  record.machine_record = row.text(19);
  record.agent_hash = row.text(20);
  return record;
}

// Of a row as the two queries below have it.
KeyedCreate read_keyed_create(const Statement& row) {
  KeyedCreate record{.team = TeamId(row.text(0)),
                     .key = row.text(1),
                     .fingerprint = row.text(2),
                     .sandbox = SandboxId(row.text(3)),
                     .answer = std::nullopt,
                     .begun_at = time_from_column(row.number(6))};
  if (row.number(4) != 0) record.answer = row.text(5);
  return record;
}

// One connection behind a lock: SQLite has one writer anyway, and the calls are short.
class SqliteStore final : public Store {
 public:
  explicit SqliteStore(Database database) : database_(std::move(database)) {}

  Result<void> put_team(const Team& team) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("INSERT INTO teams (id, name, created_at) "
                                        "VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET "
                                        "name = excluded.name"));
    return statement.bind(1, team.id.str())
        .bind(2, team.name)
        .bind(3, to_column(team.created_at))
        .run();
  }

  Result<std::optional<Team>> find_team_by_name(std::string_view name) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement row,
                      database_.prepare("SELECT id, name, created_at FROM teams WHERE name = ?1"));
    ALCOVE_TRY_ASSIGN(const bool found, row.bind(1, name).step());
    if (!found) return std::nullopt;
    return read_team(row);
  }

  Result<std::vector<Team>> list_teams() override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement row,
        database_.prepare("SELECT id, name, created_at FROM teams ORDER BY created_at, id"));
    std::vector<Team> teams;
    for (;;) {
      ALCOVE_TRY_ASSIGN(const bool more, row.step());
      if (!more) return teams;
      teams.push_back(read_team(row));
    }
  }

  Result<void> put_key(const ApiKey& key) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT INTO api_keys (id, team_id, name, sha256, mask_prefix, "
                          "mask_suffix, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) "
                          "ON CONFLICT (id) DO UPDATE SET team_id = excluded.team_id, "
                          "name = excluded.name, sha256 = excluded.sha256, "
                          "mask_prefix = excluded.mask_prefix, "
                          "mask_suffix = excluded.mask_suffix"));
    return statement.bind(1, key.id.str())
        .bind(2, key.team.str())
        .bind(3, key.name)
        .bind(4, key.sha256_hex)
        .bind(5, key.mask_prefix)
        .bind(6, key.mask_suffix)
        .bind(7, to_column(key.created_at))
        .run();
  }

  Result<std::vector<ApiKey>> list_keys() override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement row,
                      database_.prepare("SELECT id, team_id, name, sha256, mask_prefix, "
                                        "mask_suffix, created_at FROM api_keys "
                                        "ORDER BY created_at, id"));
    std::vector<ApiKey> keys;
    for (;;) {
      ALCOVE_TRY_ASSIGN(const bool more, row.step());
      if (!more) return keys;
      keys.push_back(ApiKey{.id = KeyId(row.text(0)),
                            .team = TeamId(row.text(1)),
                            .name = row.text(2),
                            .sha256_hex = row.text(3),
                            .mask_prefix = row.text(4),
                            .mask_suffix = row.text(5),
                            .created_at = time_from_column(row.number(6))});
    }
  }

  Result<void> remove_key(const KeyId& id) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement statement, database_.prepare("DELETE FROM api_keys WHERE id = ?1"));
    return statement.bind(1, id.str()).run();
  }

  Result<void> put_template(const Template& record) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT INTO templates (id, name, aliases, build_id, build_hash, "
                          "build_json, team_id, created_at, updated_at) "
                          "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "
                          "ON CONFLICT (id) DO UPDATE SET name = excluded.name, "
                          "aliases = excluded.aliases, build_id = excluded.build_id, "
                          "build_hash = excluded.build_hash, build_json = excluded.build_json, "
                          "team_id = excluded.team_id, updated_at = excluded.updated_at"));
    const std::string aliases = to_column(record.aliases);
    return statement.bind(1, record.id.str())
        .bind(2, record.name)
        .bind(3, aliases)
        .bind(4, record.build.str())
        .bind(5, record.build_hash)
        .bind(6, record.build_json)
        .bind(7, record.team.str())
        .bind(8, to_column(record.created_at == WallTime{} ? record.updated_at : record.created_at))
        .bind(9, to_column(record.updated_at))
        .run();
  }

  Result<std::vector<Template>> list_templates() override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement row,
                      database_.prepare("SELECT id, name, aliases, build_id, build_hash, "
                                        "build_json, team_id, created_at, updated_at "
                                        "FROM templates ORDER BY created_at, id"));
    std::vector<Template> templates;
    for (;;) {
      ALCOVE_TRY_ASSIGN(const bool more, row.step());
      if (!more) return templates;
      ALCOVE_TRY_ASSIGN(Template record, read_template(row));
      templates.push_back(std::move(record));
    }
  }

  Result<void> put_sandbox(const Sandbox& record) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT OR REPLACE INTO sandboxes (id, team_id, template_id, "
                          "template_alias, build_id, build_hash, started_at, end_at, vcpu_count, "
                          "memory_bytes, disk_bytes, metadata, secure, envd_token, traffic_token, "
                          "allow_internet_access, network_json, mcp_json, driver, "
                          "machine_record, agent_hash) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "
                          "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)"));
    const std::string metadata = to_column(record.metadata);
    return statement.bind(1, record.id.str())
        .bind(2, record.team.str())
        .bind(3, record.template_id.str())
        .bind(4, record.template_alias)
        .bind(5, record.build.str())
        .bind(6, record.build_hash)
        .bind(7, to_column(record.started_at))
        .bind(8, to_column(record.end_at))
        .bind(9, int64_t{record.vcpu_count})
        .bind(10, static_cast<int64_t>(record.memory_bytes))
        .bind(11, static_cast<int64_t>(record.disk_bytes))
        .bind(12, metadata)
        .bind(13, int64_t{record.secure})
        .bind(14, record.envd_token)
        .bind(15, record.traffic_token)
        .bind(16, record.allow_internet_access
                      ? std::optional<int64_t>(*record.allow_internet_access)
                      : std::nullopt)
        .bind(17, record.network_json)
        .bind(18, record.mcp_json)
        .bind(19, record.driver)
        .bind(20, record.machine_record)
        .bind(21, record.agent_hash)
        .run();
  }

  Result<void> set_sandbox_end(const SandboxId& id, WallTime end_at) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("UPDATE sandboxes SET end_at = ?2 WHERE id = ?1"));
    ALCOVE_TRY(statement.bind(1, id.str()).bind(2, to_column(end_at)).run());
    if (database_.changes() == 0) {
      return fail(Code::kNotFound, "sandbox " + id.str() + " is not in the store");
    }
    return {};
  }

  Result<std::vector<Sandbox>> list_sandboxes() override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement row,
        database_.prepare("SELECT id, team_id, template_id, template_alias, build_id, build_hash, "
                          "started_at, end_at, vcpu_count, memory_bytes, disk_bytes, metadata, "
                          "secure, envd_token, traffic_token, allow_internet_access, "
                          "network_json, mcp_json, driver, machine_record, agent_hash "
                          "FROM sandboxes ORDER BY started_at, id"));
    std::vector<Sandbox> sandboxes;
    for (;;) {
      ALCOVE_TRY_ASSIGN(const bool more, row.step());
      if (!more) return sandboxes;
      ALCOVE_TRY_ASSIGN(Sandbox record, read_sandbox(row));
      sandboxes.push_back(std::move(record));
    }
  }

  Result<void> end_sandbox(const EndedSandbox& record) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Transaction transaction, Transaction::begin(database_));
    ALCOVE_TRY(remove_sandbox(record.id));
    ALCOVE_TRY(put_ended_sandbox(record));
    return transaction.commit();
  }

  Result<std::optional<EndedSandbox>> find_ended_sandbox(const SandboxId& id) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement row,
        database_.prepare("SELECT team_id, ended_at, log FROM ended_sandboxes WHERE id = ?1"));
    ALCOVE_TRY_ASSIGN(const bool found, row.bind(1, id.str()).step());
    if (!found) return std::nullopt;
    return EndedSandbox{.id = id,
                        .team = TeamId(row.text(0)),
                        .ended_at = time_from_column(row.number(1)),
                        .log = row.text(2)};
  }

  Result<void> forget_ended_sandboxes(WallTime before, uint64_t max_bytes) override {
    for (;;) {
      const std::lock_guard lock(mutex_);
      ALCOVE_TRY_ASSIGN(const int64_t count, count_outdated(before, max_bytes));
      if (count == 0) return {};
      ALCOVE_TRY_ASSIGN(Statement statement,
                        database_.prepare("DELETE FROM ended_sandboxes WHERE id IN (SELECT id FROM "
                                          "ended_sandboxes ORDER BY ended_at, id LIMIT ?1)"));
      ALCOVE_TRY(statement.bind(1, count).run());
    }
  }

  Result<std::optional<KeyedCreate>> begin_keyed_create(const KeyedCreate& record,
                                                        WallTime forget_before) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Transaction transaction, Transaction::begin(database_));
    ALCOVE_TRY(forget_keyed_creates(forget_before));
    ALCOVE_TRY_ASSIGN(std::optional<KeyedCreate> known, find_keyed_create(record.team, record.key));
    if (!known) ALCOVE_TRY(insert_keyed_create(record));
    ALCOVE_TRY(transaction.commit());
    return known;
  }

  Result<std::vector<KeyedCreate>> list_unanswered_creates() override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement row,
        database_.prepare("SELECT team_id, key, fingerprint, sandbox_id, answered, answer, "
                          "begun_at FROM keyed_creates WHERE answered = 0"));
    std::vector<KeyedCreate> records;
    for (;;) {
      ALCOVE_TRY_ASSIGN(const bool more, row.step());
      if (!more) return records;
      records.push_back(read_keyed_create(row));
    }
  }

  Result<void> finish_keyed_create(const TeamId& team, std::string_view key,
                                   std::string_view answer) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("UPDATE keyed_creates SET answered = 1, answer = ?3 "
                                        "WHERE team_id = ?1 AND key = ?2"));
    ALCOVE_TRY(statement.bind(1, team.str()).bind(2, key).bind(3, answer).run());
    if (database_.changes() == 0) return fail(Code::kNotFound, "no such keyed create");
    return {};
  }

  Result<void> release_keyed_create(const TeamId& team, std::string_view key) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("DELETE FROM keyed_creates "
                                        "WHERE team_id = ?1 AND key = ?2 AND answered = 0"));
    return statement.bind(1, team.str()).bind(2, key).run();
  }

  Result<void> put_setting(std::string_view name, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT OR REPLACE INTO settings (name, value) VALUES (?1, ?2)"));
    return statement.bind(1, name).bind(2, value).run();
  }

  Result<std::optional<std::string>> find_setting(std::string_view name) override {
    const std::lock_guard lock(mutex_);
    ALCOVE_TRY_ASSIGN(Statement row,
                      database_.prepare("SELECT value FROM settings WHERE name = ?1"));
    ALCOVE_TRY_ASSIGN(const bool found, row.bind(1, name).step());
    if (!found) return std::nullopt;
    return row.text(0);
  }

 private:
  static Team read_team(const Statement& row) {
    return Team{.id = TeamId(row.text(0)),
                .name = row.text(1),
                .created_at = time_from_column(row.number(2))};
  }

  // These two run within a transaction.
  Result<void> remove_sandbox(const SandboxId& id) {
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("DELETE FROM sandboxes WHERE id = ?1"));
    return statement.bind(1, id.str()).run();
  }

  Result<void> put_ended_sandbox(const EndedSandbox& record) {
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT OR REPLACE INTO ended_sandboxes (id, team_id, ended_at, "
                          "log_bytes, log) VALUES (?1, ?2, ?3, ?4, ?5)"));
    return statement.bind(1, record.id.str())
        .bind(2, record.team.str())
        .bind(3, to_column(record.ended_at))
        .bind(4, static_cast<int64_t>(record.log.size()))
        .bind(5, record.log)
        .run();
  }

  // How many of the oldest are to go, up to the number that one call deletes.
  Result<int64_t> count_outdated(WallTime before, uint64_t max_bytes) {
    constexpr int64_t kMostAtOnce = 200;
    ALCOVE_TRY_ASSIGN(int64_t bytes, database_.query_number("SELECT coalesce(sum(log_bytes), 0) "
                                                            "FROM ended_sandboxes"));
    ALCOVE_TRY_ASSIGN(Statement row, database_.prepare("SELECT ended_at, log_bytes FROM "
                                                       "ended_sandboxes ORDER BY ended_at, id"));
    int64_t count = 0;
    while (count < kMostAtOnce) {
      ALCOVE_TRY_ASSIGN(const bool found, row.step());
      if (!found) break;
      const bool too_much = static_cast<uint64_t>(bytes) > max_bytes;
      if (!too_much && time_from_column(row.number(0)) >= before) break;
      bytes -= row.number(1);
      ++count;
    }
    return count;
  }

  // These three run within a transaction.
  Result<void> forget_keyed_creates(WallTime before) {
    ALCOVE_TRY_ASSIGN(Statement statement,
                      database_.prepare("DELETE FROM keyed_creates WHERE begun_at < ?1"));
    return statement.bind(1, to_column(before)).run();
  }

  Result<std::optional<KeyedCreate>> find_keyed_create(const TeamId& team, const std::string& key) {
    ALCOVE_TRY_ASSIGN(Statement row,
                      database_.prepare("SELECT team_id, key, fingerprint, sandbox_id, answered, "
                                        "answer, begun_at FROM keyed_creates "
                                        "WHERE team_id = ?1 AND key = ?2"));
    ALCOVE_TRY_ASSIGN(const bool found, row.bind(1, team.str()).bind(2, key).step());
    if (!found) return std::nullopt;
    return read_keyed_create(row);
  }

  Result<void> insert_keyed_create(const KeyedCreate& record) {
    ALCOVE_TRY_ASSIGN(
        Statement statement,
        database_.prepare("INSERT INTO keyed_creates (team_id, key, fingerprint, answered, "
                          "answer, begun_at, sandbox_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)"));
    return statement.bind(1, record.team.str())
        .bind(2, record.key)
        .bind(3, record.fingerprint)
        .bind(4, int64_t{record.answer.has_value()})
        .bind(5, record.answer ? std::string_view(*record.answer) : std::string_view(""))
        .bind(6, to_column(record.begun_at))
        .bind(7, record.sandbox.str())
        .run();
  }

  std::mutex mutex_;
  Database database_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& path) {
  ALCOVE_TRY_ASSIGN(Database database, Database::open(path));
  // Before the log is switched: a file that is refused is not touched.
  ALCOVE_TRY(migrate(database, migrations(), path));
  ALCOVE_TRY(database.use_durable_wal());
  return std::make_unique<SqliteStore>(std::move(database));
}

}  // namespace alcove::store

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "store/migrations.h"

#include <iterator>

#include "base/strings.h"

namespace alcove::store {
namespace {

// "alcv": says whose file it is (PRAGMA application_id).
constexpr int64_t kApplicationId = 0x616c6376;

Result<void> first_tables(Database& database) {
  return database.execute(R"sql(
    CREATE TABLE teams (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL UNIQUE,
      created_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE api_keys (
      id TEXT PRIMARY KEY,
      team_id TEXT NOT NULL REFERENCES teams (id),
      name TEXT NOT NULL,
      sha256 TEXT NOT NULL UNIQUE,
      mask_prefix TEXT NOT NULL,
      mask_suffix TEXT NOT NULL,
      created_at INTEGER NOT NULL
    ) STRICT;

    CREATE TABLE templates (
      id TEXT PRIMARY KEY,
      name TEXT NOT NULL,
      aliases TEXT NOT NULL,
      build_id TEXT NOT NULL,
      build_hash TEXT NOT NULL,
      build_json TEXT NOT NULL,
      team_id TEXT NOT NULL,
      created_at INTEGER NOT NULL,
      updated_at INTEGER NOT NULL,
      UNIQUE (team_id, name)
    ) STRICT;

    CREATE TABLE sandboxes (
      id TEXT PRIMARY KEY,
      team_id TEXT NOT NULL,
      template_id TEXT NOT NULL,
      template_alias TEXT NOT NULL,
      build_id TEXT NOT NULL,
      build_hash TEXT NOT NULL,
      started_at INTEGER NOT NULL,
      end_at INTEGER NOT NULL,
      vcpu_count INTEGER NOT NULL,
      memory_bytes INTEGER NOT NULL,
      disk_bytes INTEGER NOT NULL,
      metadata TEXT NOT NULL,
      secure INTEGER NOT NULL,
      envd_token TEXT NOT NULL,
      traffic_token TEXT NOT NULL,
      allow_internet_access INTEGER,
      network_json TEXT NOT NULL,
      mcp_json TEXT NOT NULL,
      driver TEXT NOT NULL,
      machine_record TEXT NOT NULL,
      agent_hash TEXT NOT NULL
    ) STRICT;

    CREATE TABLE settings (
      name TEXT PRIMARY KEY,
      value TEXT NOT NULL
    ) STRICT;
  )sql");
}

Result<void> keyed_creates(Database& database) {
  return database.execute(R"sql(
    CREATE TABLE keyed_creates (
      team_id TEXT NOT NULL,
      key TEXT NOT NULL,
      fingerprint TEXT NOT NULL,
      answered INTEGER NOT NULL,
      answer TEXT NOT NULL,
      begun_at INTEGER NOT NULL,
      PRIMARY KEY (team_id, key)
    ) STRICT, WITHOUT ROWID;

    CREATE INDEX keyed_creates_by_age ON keyed_creates (begun_at);
  )sql");
}

Result<void> ended_sandboxes(Database& database) {
  return database.execute(R"sql(
    CREATE TABLE ended_sandboxes (
      id TEXT PRIMARY KEY,
      team_id TEXT NOT NULL,
      ended_at INTEGER NOT NULL,
      log_bytes INTEGER NOT NULL,
      log TEXT NOT NULL
    ) STRICT;

    CREATE INDEX ended_sandboxes_by_age ON ended_sandboxes (ended_at, id, log_bytes);
  )sql");
}

Result<void> sandboxes_of_keyed_creates(Database& database) {
  return database.execute(
      "ALTER TABLE keyed_creates ADD COLUMN sandbox_id TEXT NOT NULL DEFAULT ''");
}

constexpr Migration kMigrations[] = {
    {"first tables", first_tables},
    {"keyed creates", keyed_creates},
    {"ended sandboxes", ended_sandboxes},
    {"sandboxes of keyed creates", sandboxes_of_keyed_creates},
};

Result<void> check_owner(Database& database, const std::string& path) {
  // In this order: another process that migrates at the same time commits both together.
  ALCOVE_TRY_ASSIGN(const int64_t tables,
                    database.query_number("SELECT count(*) FROM sqlite_master"));
  ALCOVE_TRY_ASSIGN(const int64_t owner, database.query_number("PRAGMA application_id"));
  if (owner == kApplicationId) return {};
  if (owner == 0 && tables == 0) return {};
  return fail(Code::kFailedPrecondition,
              cat(path,
                  " is a database of another program: move it away or choose another data "
                  "directory"));
}

Result<void> check_version(int64_t version, size_t newest, const std::string& path) {
  if (version >= 0 && static_cast<uint64_t>(version) <= newest) return {};
  return fail(Code::kFailedPrecondition,
              cat(path, " has schema version ", version, ", written by a newer alcove; this one (",
                  ALCOVE_VERSION, ") knows versions up to ", newest,
                  ". Start the newer alcove again, or choose another data directory."));
}

// Applies the step after the version found under the lock; another process may have been quicker.
Result<bool> apply_next(Database& database, std::span<const Migration> steps,
                        const std::string& path) {
  ALCOVE_TRY_ASSIGN(Transaction transaction, Transaction::begin(database));
  ALCOVE_TRY_ASSIGN(const int64_t version, database.query_number("PRAGMA user_version"));
  ALCOVE_TRY(check_version(version, steps.size(), path));
  const auto done = static_cast<size_t>(version);
  if (done == steps.size()) return false;
  if (auto applied = steps[done].apply(database); !applied) {
    return fail(std::move(applied).error().context(
        cat("migrate ", path, " to version ", done + 1, " (", steps[done].name, ")")));
  }
  ALCOVE_TRY(database.execute(
      cat("PRAGMA user_version = ", done + 1, "; PRAGMA application_id = ", kApplicationId)));
  ALCOVE_TRY(transaction.commit());
  return true;
}

}  // namespace

std::span<const Migration> migrations() { return kMigrations; }

Result<void> migrate(Database& database, std::span<const Migration> steps,
                     const std::string& path) {
  ALCOVE_TRY(check_owner(database, path));
  ALCOVE_TRY_ASSIGN(const int64_t version, database.query_number("PRAGMA user_version"));
  ALCOVE_TRY(check_version(version, steps.size(), path));
  if (static_cast<size_t>(version) == steps.size()) return {};
  for (;;) {
    ALCOVE_TRY_ASSIGN(const bool applied, apply_next(database, steps, path));
    if (!applied) return {};
  }
}

}  // namespace alcove::store

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "store/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <chrono>
#include <filesystem>
#include <thread>
#include <utility>

#include "base/strings.h"
#include "base/unique_fd.h"

namespace alcove::store {
namespace {

// How long to wait for other processes (`alcove key create` beside the server).
constexpr std::chrono::milliseconds kBusyTimeout{5000};

Code code_for(int sqlite_code) {
  switch (sqlite_code) {
    case SQLITE_CONSTRAINT_UNIQUE:
    case SQLITE_CONSTRAINT_PRIMARYKEY:
      return Code::kAlreadyExists;
    case SQLITE_CONSTRAINT_FOREIGNKEY:
      return Code::kFailedPrecondition;
    default:
      break;
  }
  switch (sqlite_code & 0xFF) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return Code::kAborted;
    case SQLITE_FULL:
      return Code::kResourceExhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return Code::kDataLoss;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return Code::kPermissionDenied;
    default:
      return Code::kInternal;
  }
}

tl::unexpected<Error> fail_sqlite(sqlite3* database, int sqlite_code, std::string_view what) {
  const char* text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(sqlite_code);
  return fail(code_for(sqlite_code), cat(what, ": ", text));
}

// SQLite gives a write-ahead log the mode of the database, so only this file needs care. Its name
// is made durable here; what is in it is SQLite's business.
Result<void> create_private_file(const std::string& path) {
  // O_EXCL: closing any descriptor of an existing database would drop the locks that other
  // connections of this process hold on it (POSIX locks).
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) return {};
  if (!file.valid()) return fail_errno(errno, cat("create ", path));
  std::string folder = std::filesystem::path(path).parent_path();
  if (folder.empty()) folder = ".";
  const UniqueFd directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.valid() || ::fsync(directory.get()) != 0) {
    return fail_errno(errno, cat("sync ", folder));
  }
  return {};
}

}  // namespace

Statement::Statement(sqlite3* database, sqlite3_stmt* statement)
    : database_(database), statement_(statement) {}

Statement::Statement(Statement&& other) noexcept
    : database_(other.database_),
      statement_(std::exchange(other.statement_, nullptr)),
      bind_result_(other.bind_result_) {}

Statement::~Statement() {
  if (statement_ == nullptr) return;
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
}

Statement& Statement::bind(int index, std::string_view text) {
  // A null pointer would bind NULL instead of an empty text.
  const char* data = text.data() != nullptr ? text.data() : "";
  const int code =
      sqlite3_bind_text64(statement_, index, data, text.size(), SQLITE_STATIC, SQLITE_UTF8);
  if (bind_result_ == SQLITE_OK) bind_result_ = code;
  return *this;
}

Statement& Statement::bind(int index, int64_t number) {
  const int code = sqlite3_bind_int64(statement_, index, number);
  if (bind_result_ == SQLITE_OK) bind_result_ = code;
  return *this;
}

Statement& Statement::bind(int index, std::optional<int64_t> number) {
  if (number) return bind(index, *number);
  const int code = sqlite3_bind_null(statement_, index);
  if (bind_result_ == SQLITE_OK) bind_result_ = code;
  return *this;
}

Result<bool> Statement::step() {
  if (bind_result_ != SQLITE_OK) return fail_sqlite(database_, bind_result_, "bind parameter");
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return fail_sqlite(database_, code, "database");
}

Result<void> Statement::run() {
  ALCOVE_TRY_ASSIGN(const bool row, step());
  if (row) return fail(Code::kInternal, cat("unexpected row from: ", sqlite3_sql(statement_)));
  return {};
}

std::string Statement::text(int column) const {
  const auto* data = sqlite3_column_text(statement_, column);
  if (data == nullptr) return {};
  return {reinterpret_cast<const char*>(data),
          static_cast<size_t>(sqlite3_column_bytes(statement_, column))};
}

int64_t Statement::number(int column) const { return sqlite3_column_int64(statement_, column); }

std::optional<int64_t> Statement::optional_number(int column) const {
  if (sqlite3_column_type(statement_, column) == SQLITE_NULL) return {};
  return number(column);
}

void Database::Closer::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

void Database::Finalizer::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

Result<Database> Database::open(const std::string& path) {
  ALCOVE_TRY(create_private_file(path));
  sqlite3* raw = nullptr;
  // The owner's lock makes the connection's own one needless.
  const int code =
      sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(raw);
  if (code != SQLITE_OK) return fail_sqlite(raw, code, cat("open database ", path));
  sqlite3_extended_result_codes(raw, /*onoff=*/1);
  sqlite3_busy_timeout(raw, static_cast<int>(kBusyTimeout.count()));
  ALCOVE_TRY(database.execute("PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF;"));
  return database;
}

Result<void> Database::use_durable_wal() {
  const auto deadline = std::chrono::steady_clock::now() + kBusyTimeout;
  for (;;) {
    auto mode = switch_to_wal();
    if (mode && *mode == "wal") break;
    if (mode) {
      return fail(Code::kFailedPrecondition,
                  cat("the database cannot use a write-ahead log (it says \"", *mode,
                      "\"): keep the data directory on a local file system"));
    }
    // SQLite does not wait by itself when others are about to switch the same fresh file.
    if (mode.error().code() != Code::kAborted || std::chrono::steady_clock::now() > deadline) {
      return fail(std::move(mode).error());
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return execute("PRAGMA synchronous = FULL");
}

Result<std::string> Database::switch_to_wal() {
  ALCOVE_TRY_ASSIGN(Statement mode, prepare("PRAGMA journal_mode = WAL"));
  ALCOVE_TRY_ASSIGN(const bool row, mode.step());
  return row ? mode.text(0) : std::string();
}

Result<void> Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(database_.get(), sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return fail_sqlite(database_.get(), code, "database");
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  std::string key(sql);
  auto found = statements_.find(key);
  if (found == statements_.end()) {
    sqlite3_stmt* raw = nullptr;
    const int code =
        sqlite3_prepare_v3(database_.get(), key.c_str(), static_cast<int>(key.size() + 1),
                           SQLITE_PREPARE_PERSISTENT, &raw, nullptr);
    if (code != SQLITE_OK) return fail_sqlite(database_.get(), code, cat("prepare ", sql));
    found = statements_.emplace(std::move(key), raw).first;
  }
  return Statement(database_.get(), found->second.get());
}

Result<int64_t> Database::query_number(std::string_view sql) {
  ALCOVE_TRY_ASSIGN(Statement statement, prepare(sql));
  ALCOVE_TRY_ASSIGN(const bool row, statement.step());
  if (!row) return fail(Code::kInternal, cat("no row from: ", sql));
  return statement.number(0);
}

int64_t Database::changes() const { return sqlite3_changes64(database_.get()); }

Result<Transaction> Transaction::begin(Database& database) {
  ALCOVE_TRY(database.execute("BEGIN IMMEDIATE"));
  return Transaction(database);
}

Transaction::Transaction(Transaction&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)) {}

Transaction::~Transaction() {
  if (database_ != nullptr) (void)database_->execute("ROLLBACK");
}

Result<void> Transaction::commit() {
  ALCOVE_TRY(database_->execute("COMMIT"));
  database_ = nullptr;
  return {};
}

}  // namespace alcove::store

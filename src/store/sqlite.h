// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace alcove::store {

// A prepared statement in use: bind the parameters (from 1), then step() through the rows. Handed
// back to the database's cache, reset, when it goes out of scope. Bound text must live until then.
class Statement {
 public:
  Statement(sqlite3* database, sqlite3_stmt* statement);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, int64_t number);
  Statement& bind(int index, std::optional<int64_t> number);

  // True if there is a row; false at the end.
  Result<bool> step();
  // For statements that give no rows.
  Result<void> run();

  // Columns count from 0. NULL is an empty text, 0, or nullopt.
  std::string text(int column) const;
  int64_t number(int column) const;
  std::optional<int64_t> optional_number(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_;
  // The first bind that failed, reported by step().
  int bind_result_ = 0;
};

// One connection to an SQLite file. Not thread-safe: its owner holds a lock.
class Database {
 public:
  // Opens or creates the file (mode 0600: it holds tokens) and waits up to five seconds for locks
  // of other processes. Writes nothing by itself.
  static Result<Database> open(const std::string& path);

  // Write-ahead log with an fsync at every commit.
  Result<void> use_durable_wal();

  // Runs a script of statements without parameters.
  Result<void> execute(const std::string& sql);
  // The statement from the cache, compiled at its first use.
  Result<Statement> prepare(std::string_view sql);
  // The single number that a query gives ("PRAGMA user_version").
  Result<int64_t> query_number(std::string_view sql);

  // Rows changed by the last statement.
  int64_t changes() const;

 private:
  struct Closer {
    void operator()(sqlite3* database) const;
  };
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };

  explicit Database(sqlite3* database) : database_(database) {}
  // The journal mode in force afterwards.
  Result<std::string> switch_to_wal();

  std::unique_ptr<sqlite3, Closer> database_;
  // After database_: statements are finalized before it is closed.
  std::unordered_map<std::string, std::unique_ptr<sqlite3_stmt, Finalizer>> statements_;
};

// BEGIN IMMEDIATE; rolled back unless commit() succeeds.
class Transaction {
 public:
  static Result<Transaction> begin(Database& database);
  Transaction(Transaction&& other) noexcept;
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();

  Result<void> commit();

 private:
  explicit Transaction(Database& database) : database_(&database) {}
  Database* database_;
};

}  // namespace alcove::store

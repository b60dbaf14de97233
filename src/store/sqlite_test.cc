// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "store/sqlite.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "store/testing/temp_folder.h"

namespace alcove::store {
namespace {

using ::testing::HasSubstr;

class Sqlite : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Database::open(folder_.file("test.db"));
    ASSERT_TRUE(opened) << opened.error().message();
    database_.emplace(std::move(*opened));
    ASSERT_TRUE(database_->execute("CREATE TABLE t (id INTEGER PRIMARY KEY, x TEXT) STRICT"));
  }

  testing::TempFolder folder_;
  std::optional<Database> database_;
};

TEST_F(Sqlite, BindsAndReadsEveryKind) {
  auto row = database_->prepare("SELECT ?1, ?2, ?3, ?4");
  ASSERT_TRUE(row);
  row->bind(1, "text").bind(2, int64_t{-5}).bind(3, std::optional<int64_t>()).bind(4, "");
  ASSERT_TRUE(row->step().value());
  EXPECT_EQ(row->text(0), "text");
  EXPECT_EQ(row->number(1), -5);
  EXPECT_EQ(row->optional_number(1), -5);
  EXPECT_EQ(row->optional_number(2), std::nullopt);
  EXPECT_EQ(row->text(3), "");
  EXPECT_NE(row->optional_number(3), std::nullopt) << "an empty text is not NULL";
  EXPECT_FALSE(row->step().value());
}

TEST_F(Sqlite, StatementFromTheCacheComesBackClean) {
  constexpr std::string_view kSql = "SELECT ?1 IS NULL";
  {
    auto first = database_->prepare(kSql);
    ASSERT_TRUE(first->bind(1, "set").step().value());
    EXPECT_EQ(first->number(0), 0);
  }
  auto second = database_->prepare(kSql);
  ASSERT_TRUE(second->step().value());
  EXPECT_EQ(second->number(0), 1);
}

TEST_F(Sqlite, ParameterThatDoesNotExistIsAnError) {
  auto row = database_->prepare("SELECT ?1");
  EXPECT_FALSE(row->bind(2, "x").step());
}

TEST_F(Sqlite, BrokenSqlNamesTheStatement) {
  const auto broken = database_->prepare("SELECT nothing FROM nowhere");
  ASSERT_FALSE(broken);
  EXPECT_THAT(broken.error().message(), HasSubstr("nowhere"));
}

TEST_F(Sqlite, TransactionIsRolledBackUnlessCommitted) {
  {
    auto transaction = Transaction::begin(*database_);
    ASSERT_TRUE(transaction);
    ASSERT_TRUE(database_->execute("INSERT INTO t VALUES (1, 'a')"));
  }
  EXPECT_EQ(database_->query_number("SELECT count(*) FROM t").value(), 0);
  {
    auto transaction = Transaction::begin(*database_);
    ASSERT_TRUE(database_->execute("INSERT INTO t VALUES (1, 'a')"));
    ASSERT_TRUE(transaction->commit());
  }
  EXPECT_EQ(database_->query_number("SELECT count(*) FROM t").value(), 1);
}

TEST_F(Sqlite, DoubledKeyIsAlreadyExists) {
  ASSERT_TRUE(database_->execute("INSERT INTO t VALUES (1, 'a')"));
  const auto doubled = database_->execute("INSERT INTO t VALUES (1, 'b')");
  ASSERT_FALSE(doubled);
  EXPECT_EQ(doubled.error().code(), Code::kAlreadyExists);
}

TEST_F(Sqlite, ChangesCountsRows) {
  ASSERT_TRUE(database_->execute("INSERT INTO t VALUES (1, 'a'), (2, 'b')"));
  ASSERT_TRUE(database_->prepare("UPDATE t SET x = 'c'")->run());
  EXPECT_EQ(database_->changes(), 2);
}

}  // namespace
}  // namespace alcove::store

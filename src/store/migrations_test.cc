// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "store/migrations.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "store/testing/temp_folder.h"

namespace alcove::store {
namespace {

using ::testing::HasSubstr;

Result<void> make_fruit(Database& database) {
  return database.execute("CREATE TABLE fruit (name TEXT); INSERT INTO fruit VALUES ('apple')");
}
Result<void> add_colour(Database& database) {
  return database.execute(
      "ALTER TABLE fruit ADD COLUMN colour TEXT; UPDATE fruit SET colour = 'red'");
}
Result<void> fail_half_way(Database& database) {
  ALCOVE_TRY(database.execute("DROP TABLE fruit"));
  return database.execute("THIS IS NOT SQL");
}
Result<void> die_half_way(Database& database) {
  (void)database.execute("DROP TABLE fruit");
  _exit(7);
}

constexpr Migration kOne[] = {{"fruit", make_fruit}};
constexpr Migration kTwo[] = {{"fruit", make_fruit}, {"colour", add_colour}};
constexpr Migration kBroken[] = {{"fruit", make_fruit}, {"broken", fail_half_way}};
constexpr Migration kDeadly[] = {{"fruit", make_fruit}, {"deadly", die_half_way}};

class Migrations : public ::testing::Test {
 protected:
  Result<void> run(std::span<const Migration> steps) {
    ALCOVE_TRY_ASSIGN(Database database, Database::open(path_));
    return migrate(database, steps, path_);
  }
  int64_t number(std::string_view sql) {
    auto database = Database::open(path_);
    return database ? database->query_number(sql).value_or(-1) : -1;
  }

  testing::TempFolder folder_;
  std::string path_ = folder_.file("test.db");
};

TEST_F(Migrations, BringAnEmptyFileToTheNewestVersion) {
  ASSERT_TRUE(run(kTwo));
  EXPECT_EQ(number("PRAGMA user_version"), 2);
  EXPECT_EQ(number("SELECT count(*) FROM fruit WHERE colour = 'red'"), 1);
}

TEST_F(Migrations, KeepDataFromTheVersionBefore) {
  ASSERT_TRUE(run(kOne));
  ASSERT_EQ(number("PRAGMA user_version"), 1);
  ASSERT_TRUE(run(kTwo));
  EXPECT_EQ(number("SELECT count(*) FROM fruit WHERE name = 'apple' AND colour = 'red'"), 1);
}

TEST_F(Migrations, AreNotRepeated) {
  ASSERT_TRUE(run(kTwo));
  ASSERT_TRUE(run(kTwo));
  EXPECT_EQ(number("SELECT count(*) FROM fruit"), 1);
}

TEST_F(Migrations, RefuseToGoBack) {
  ASSERT_TRUE(run(kTwo));
  const auto refused = run(kOne);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("schema version 2"));
  EXPECT_THAT(refused.error().message(), HasSubstr("up to 1"));
}

TEST_F(Migrations, AFailingStepLeavesTheVersionBefore) {
  const auto failed = run(kBroken);
  ASSERT_FALSE(failed);
  EXPECT_THAT(failed.error().message(), HasSubstr("to version 2 (broken)"));
  EXPECT_EQ(number("PRAGMA user_version"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM fruit"), 1);
}

TEST_F(Migrations, ACrashWithinAStepLeavesTheVersionBeforeAndCanBeContinued) {
  const pid_t child = fork();
  if (child == 0) {
    (void)run(kDeadly);
    _exit(1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  ASSERT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(number("PRAGMA user_version"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM fruit"), 1);
  ASSERT_TRUE(run(kTwo));
  EXPECT_EQ(number("PRAGMA user_version"), 2);
}

TEST_F(Migrations, OfTwoProcessesAtOnceOneWaitsForTheOther) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(run(kTwo) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(number("SELECT count(*) FROM fruit"), 1);
}

TEST_F(Migrations, OurFirstVersionKeepsItsDataUpToTheNewest) {
  ASSERT_TRUE(run(migrations().first(1)));
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("INSERT INTO settings VALUES ('token.seed', 'x')"));
  }
  ASSERT_TRUE(run(migrations()));
  EXPECT_EQ(number("SELECT count(*) FROM settings"), 1);
  EXPECT_EQ(number("SELECT count(*) FROM keyed_creates"), 0);
}

TEST_F(Migrations, KeyedCreatesOfOlderVersionsHaveNoSandbox) {
  ASSERT_TRUE(run(migrations().first(3)));
  {
    auto database = Database::open(path_);
    ASSERT_TRUE(database);
    ASSERT_TRUE(database->execute("INSERT INTO keyed_creates VALUES ('t1', 'k', 'f', 0, '', 5)"));
  }
  ASSERT_TRUE(run(migrations()));
  EXPECT_EQ(number("SELECT count(*) FROM keyed_creates WHERE sandbox_id = ''"), 1);
}

TEST_F(Migrations, OurOwnStepsRunOnAnEmptyFile) {
  ASSERT_TRUE(run(migrations()));
  EXPECT_EQ(number("PRAGMA user_version"), static_cast<int64_t>(migrations().size()));
  EXPECT_EQ(number("SELECT count(*) FROM sandboxes"), 0);
}

}  // namespace
}  // namespace alcove::store

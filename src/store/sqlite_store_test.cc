// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// What only a store on disk can promise.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "base/strings.h"
#include "store/migrations.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "store/testing/temp_folder.h"

namespace alcove::store {
namespace {

using ::testing::HasSubstr;

Sandbox sandbox_named(const std::string& id) {
  Sandbox record;
  record.id = SandboxId(id);
  return record;
}

TEST(SqliteStore, KeepsRecordsOverAReopen) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  {
    auto store = open_sqlite_store(path);
    ASSERT_TRUE(store) << store.error().message();
    ASSERT_TRUE((*store)->put_setting("name", "value"));
  }
  auto store = open_sqlite_store(path);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ((*store)->find_setting("name").value(), "value");
}

TEST(SqliteStore, AnAnsweredPutSurvivesTheDeathOfTheProcess) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_sqlite_store(path);
    const bool done = store && (*store)->put_sandbox(sandbox_named("i1"));
    _exit(done ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto store = open_sqlite_store(path);
  ASSERT_TRUE(store) << store.error().message();
  EXPECT_EQ((*store)->list_sandboxes()->size(), 1u);
}

TEST(SqliteStore, AKeyThatACrashLeftWithoutAnswerStaysClaimed) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  const KeyedCreate record{.team = TeamId("t1"),
                           .key = "k",
                           .fingerprint = "asked",
                           .sandbox = SandboxId("i1"),
                           .answer = std::nullopt,
                           .begun_at = {}};
  const pid_t child = fork();
  if (child == 0) {
    auto store = open_sqlite_store(path);
    _exit(store && (*store)->begin_keyed_create(record, WallTime{}) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  auto store = open_sqlite_store(path);
  ASSERT_TRUE(store) << store.error().message();
  const auto known = (*store)->begin_keyed_create(record, WallTime{});
  ASSERT_TRUE(known && *known);
  EXPECT_EQ((*known)->answer, std::nullopt);
}

TEST(SqliteStore, TwoProcessesMayUseTheFileAtOnce) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  auto server = open_sqlite_store(path);
  auto command = open_sqlite_store(path);
  ASSERT_TRUE(server && command);
  ASSERT_TRUE((*command)->put_team(Team{.id = TeamId("t1"), .name = "default", .created_at = {}}));
  EXPECT_TRUE((*server)->find_team_by_name("default").value());
}

TEST(SqliteStore, ManyProcessesMayMakeTheFileAtOnce) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      auto store = open_sqlite_store(path);
      _exit(store && (*store)->put_sandbox(sandbox_named(cat("i", i))) ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ((*open_sqlite_store(path))->list_sandboxes()->size(), children.size());
}

TEST(SqliteStore, FilesAreForTheOwnerOnly) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  auto store = open_sqlite_store(path);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->put_setting("name", "value"));
  for (const char* suffix : {"", "-wal", "-shm"}) {
    struct stat info{};
    ASSERT_EQ(stat((path + suffix).c_str(), &info), 0) << suffix;
    EXPECT_EQ(info.st_mode & 0777, 0600u) << suffix;
  }
}

TEST(SqliteStore, CommitsAreSyncedThroughAWriteAheadLog) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  auto database = Database::open(path);
  ASSERT_TRUE(database);
  ASSERT_TRUE(database->use_durable_wal());
  EXPECT_EQ(database->query_number("PRAGMA synchronous").value(), 2);
  auto mode = database->prepare("PRAGMA journal_mode");
  ASSERT_TRUE(mode && mode->step().value());
  EXPECT_EQ(mode->text(0), "wal");
}

TEST(SqliteStore, RefusesADatabaseOfANewerVersionAndLeavesItAlone) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  ASSERT_TRUE(open_sqlite_store(path));
  {
    auto database = Database::open(path);
    ASSERT_TRUE(database->execute("PRAGMA user_version = 4711; CREATE TABLE from_the_future (x)"));
  }
  const auto refused = open_sqlite_store(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kFailedPrecondition);
  EXPECT_THAT(refused.error().message(), HasSubstr("schema version 4711"));
  EXPECT_THAT(refused.error().message(),
              HasSubstr(cat("knows versions up to ", migrations().size())));
  EXPECT_THAT(refused.error().message(), HasSubstr("Start the newer alcove again"));
  EXPECT_THAT(refused.error().message(), HasSubstr(path));
  auto database = Database::open(path);
  EXPECT_EQ(database->query_number("PRAGMA user_version").value(), 4711);
}

TEST(SqliteStore, RefusesTheDatabaseOfAnotherProgram) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  ASSERT_TRUE(Database::open(path)->execute("CREATE TABLE bookmarks (url)"));
  const auto refused = open_sqlite_store(path);
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("another program"));
}

TEST(SqliteStore, RefusesAFileThatIsNoDatabase) {
  const testing::TempFolder folder;
  const std::string path = folder.file("alcove.db");
  FILE* file = fopen(path.c_str(), "w");
  for (int i = 0; i < 200; ++i) fputs("this is a letter, not a database\n", file);
  fclose(file);
  const auto refused = open_sqlite_store(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kDataLoss);
}

TEST(SqliteStore, SaysWhichFileCannotBeOpened) {
  const auto refused = open_sqlite_store("/nonexistent-folder/alcove.db");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message(), HasSubstr("/nonexistent-folder/alcove.db"));
}

}  // namespace
}  // namespace alcove::store

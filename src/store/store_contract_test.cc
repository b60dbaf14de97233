// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// What every Store promises; run against SQLite and against the fake that other rooms test with.

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/store.h"
#include "store/testing/memory_store.h"
#include "store/testing/temp_folder.h"

namespace alcove::store {
namespace {

using std::chrono::microseconds;

WallTime at(int64_t count) { return WallTime(microseconds(count)); }

Team make_team(const std::string& id, const std::string& name) {
  return Team{.id = TeamId(id), .name = name, .created_at = at(1'000'001)};
}

ApiKey make_key(const std::string& id, const std::string& team, const std::string& hash) {
  return ApiKey{.id = KeyId(id),
                .team = TeamId(team),
                .name = "laptop",
                .sha256_hex = hash,
                .mask_prefix = "ab",
                .mask_suffix = "cdef",
                .created_at = at(7)};
}

Template make_template(const std::string& id, const std::string& name) {
  Template record;
  record.id = TemplateId(id);
  record.name = name;
  record.aliases = {"first", "second \"quoted\""};
  record.build = BuildId("build-1");
  record.build_hash = "hash-1";
  record.build_json = R"({"layers":["a"]})";
  record.team = TeamId("");
  record.updated_at = at(50);
  return record;
}

Sandbox make_sandbox(const std::string& id) {
  Sandbox record;
  record.id = SandboxId(id);
  record.team = TeamId("team-1");
  record.template_id = TemplateId("template-1");
  record.template_alias = "base";
  record.build = BuildId("build-1");
  record.build_hash = "hash-1";
  record.started_at = at(1'700'000'000'123'456);
  record.end_at = at(1'700'000'300'123'456);
  record.vcpu_count = 2;
  record.memory_bytes = 1ull << 30;
  record.disk_bytes = 10ull << 30;
  record.metadata = {{"key", "value"}, {"größe", "ü & \"x\"\n"}, {"", ""}};
  record.secure = true;
  record.envd_token = "token";
  record.traffic_token = "traffic";
  record.allow_internet_access = false;
  record.network_json = R"({"allowPublicTraffic":false})";
  record.mcp_json = R"(["exa"])";
  record.driver = "jail";
  record.machine_record = std::string("with\0zero", 9);
  record.agent_hash = "agent";
  return record;
}

void expect_equal(const Sandbox& a, const Sandbox& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.team, b.team);
  EXPECT_EQ(a.template_id, b.template_id);
  EXPECT_EQ(a.template_alias, b.template_alias);
  EXPECT_EQ(a.build, b.build);
  EXPECT_EQ(a.build_hash, b.build_hash);
  EXPECT_EQ(a.started_at, b.started_at);
  EXPECT_EQ(a.end_at, b.end_at);
  EXPECT_EQ(a.vcpu_count, b.vcpu_count);
  EXPECT_EQ(a.memory_bytes, b.memory_bytes);
  EXPECT_EQ(a.disk_bytes, b.disk_bytes);
  EXPECT_EQ(a.metadata, b.metadata);
  EXPECT_EQ(a.secure, b.secure);
  EXPECT_EQ(a.envd_token, b.envd_token);
  EXPECT_EQ(a.traffic_token, b.traffic_token);
  EXPECT_EQ(a.allow_internet_access, b.allow_internet_access);
  EXPECT_EQ(a.network_json, b.network_json);
  EXPECT_EQ(a.mcp_json, b.mcp_json);
  EXPECT_EQ(a.driver, b.driver);
  EXPECT_EQ(a.machine_record, b.machine_record);
  EXPECT_EQ(a.agent_hash, b.agent_hash);
}

class StoreContract : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "memory") {
      store_ = std::make_unique<testing::MemoryStore>();
      return;
    }
    auto opened = open_sqlite_store(folder_.file("alcove.db"));
    ASSERT_TRUE(opened) << opened.error().message();
    store_ = std::move(*opened);
  }

  testing::TempFolder folder_;
  std::unique_ptr<Store> store_;
};

TEST_P(StoreContract, TeamIsFoundByNameAndListed) {
  ASSERT_TRUE(store_->put_team(make_team("t1", "default")));
  const auto found = store_->find_team_by_name("default");
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->id, TeamId("t1"));
  EXPECT_EQ((*found)->created_at, at(1'000'001));
  EXPECT_FALSE(store_->find_team_by_name("other").value());
  EXPECT_EQ(store_->list_teams()->size(), 1u);
}

TEST_P(StoreContract, TeamCanBeRenamedButNotToATakenName) {
  ASSERT_TRUE(store_->put_team(make_team("t1", "one")));
  ASSERT_TRUE(store_->put_team(make_team("t2", "two")));
  ASSERT_TRUE(store_->put_team(make_team("t1", "eins")));
  EXPECT_FALSE(store_->find_team_by_name("one").value());
  const auto taken = store_->put_team(make_team("t1", "two"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Code::kAlreadyExists);
}

TEST_P(StoreContract, KeysNeedATeamAndAHashOfTheirOwn) {
  const auto orphan = store_->put_key(make_key("k1", "nobody", "h1"));
  ASSERT_FALSE(orphan);
  EXPECT_EQ(orphan.error().code(), Code::kFailedPrecondition);

  ASSERT_TRUE(store_->put_team(make_team("t1", "default")));
  ASSERT_TRUE(store_->put_key(make_key("k1", "t1", "h1")));
  const auto doubled = store_->put_key(make_key("k2", "t1", "h1"));
  ASSERT_FALSE(doubled);
  EXPECT_EQ(doubled.error().code(), Code::kAlreadyExists);

  const auto keys = store_->list_keys();
  ASSERT_EQ(keys->size(), 1u);
  const ApiKey& key = keys->front();
  EXPECT_EQ(key.id, KeyId("k1"));
  EXPECT_EQ(key.team, TeamId("t1"));
  EXPECT_EQ(key.name, "laptop");
  EXPECT_EQ(key.sha256_hex, "h1");
  EXPECT_EQ(key.mask_prefix, "ab");
  EXPECT_EQ(key.mask_suffix, "cdef");
  EXPECT_EQ(key.created_at, at(7));
}

TEST_P(StoreContract, RemovedKeyIsGoneAndRemovingTwiceIsFine) {
  ASSERT_TRUE(store_->put_team(make_team("t1", "default")));
  ASSERT_TRUE(store_->put_key(make_key("k1", "t1", "h1")));
  ASSERT_TRUE(store_->remove_key(KeyId("k1")));
  ASSERT_TRUE(store_->remove_key(KeyId("k1")));
  EXPECT_TRUE(store_->list_keys()->empty());
}

TEST_P(StoreContract, TemplateKeepsItsTimeOfCreation) {
  Template record = make_template("id1", "base");
  ASSERT_TRUE(store_->put_template(record));
  record.build = BuildId("build-2");
  record.aliases = {};
  record.updated_at = at(99);
  ASSERT_TRUE(store_->put_template(record));

  const auto all = store_->list_templates();
  ASSERT_EQ(all->size(), 1u);
  EXPECT_EQ(all->front().build, BuildId("build-2"));
  EXPECT_TRUE(all->front().aliases.empty());
  EXPECT_EQ(all->front().build_json, R"({"layers":["a"]})");
  EXPECT_EQ(all->front().created_at, at(50));
  EXPECT_EQ(all->front().updated_at, at(99));
}

TEST_P(StoreContract, TemplateAliasesComeBack) {
  ASSERT_TRUE(store_->put_template(make_template("id1", "base")));
  EXPECT_EQ(store_->list_templates()->front().aliases,
            (std::vector<std::string>{"first", "second \"quoted\""}));
}

TEST_P(StoreContract, TemplateNameIsUniqueWithinItsTeam) {
  ASSERT_TRUE(store_->put_template(make_template("id1", "base")));
  const auto taken = store_->put_template(make_template("id2", "base"));
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code(), Code::kAlreadyExists);
  Template own = make_template("id3", "base");
  own.team = TeamId("t1");
  EXPECT_TRUE(store_->put_template(own));
}

TEST_P(StoreContract, SandboxComesBackAsItWasPut) {
  const Sandbox record = make_sandbox("i1");
  ASSERT_TRUE(store_->put_sandbox(record));
  const auto all = store_->list_sandboxes();
  ASSERT_TRUE(all) << all.error().message();
  ASSERT_EQ(all->size(), 1u);
  expect_equal(all->front(), record);
}

TEST_P(StoreContract, AnUnsaidInternetFlagStaysUnsaid) {
  Sandbox record = make_sandbox("i1");
  record.allow_internet_access = std::nullopt;
  record.secure = false;
  ASSERT_TRUE(store_->put_sandbox(record));
  EXPECT_EQ(store_->list_sandboxes()->front().allow_internet_access, std::nullopt);
  EXPECT_FALSE(store_->list_sandboxes()->front().secure);
}

TEST_P(StoreContract, EndOfASandboxCanBeMoved) {
  ASSERT_TRUE(store_->put_sandbox(make_sandbox("i1")));
  ASSERT_TRUE(store_->set_sandbox_end(SandboxId("i1"), at(42)));
  EXPECT_EQ(store_->list_sandboxes()->front().end_at, at(42));
  const auto unknown = store_->set_sandbox_end(SandboxId("i2"), at(42));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
}

EndedSandbox make_ended(const std::string& id, WallTime ended_at, std::string log = "log") {
  return {.id = SandboxId(id), .team = TeamId("t1"), .ended_at = ended_at, .log = std::move(log)};
}

TEST_P(StoreContract, EndedSandboxIsGoneButForItsLog) {
  ASSERT_TRUE(store_->put_sandbox(make_sandbox("i1")));
  ASSERT_TRUE(store_->put_sandbox(make_sandbox("i2")));
  EXPECT_FALSE(store_->find_ended_sandbox(SandboxId("i1")).value());
  ASSERT_TRUE(store_->end_sandbox(make_ended("i1", at(5), R"({"ü":1})")));
  // Again, and one that never was: no error, the last word counts.
  ASSERT_TRUE(store_->end_sandbox(make_ended("i1", at(6), R"({"ü":2})")));
  ASSERT_TRUE(store_->end_sandbox(make_ended("i3", at(6))));
  ASSERT_EQ(store_->list_sandboxes()->size(), 1u);
  EXPECT_EQ(store_->list_sandboxes()->front().id, SandboxId("i2"));
  const auto ended = store_->find_ended_sandbox(SandboxId("i1"));
  ASSERT_TRUE(ended && *ended);
  EXPECT_EQ((*ended)->id, SandboxId("i1"));
  EXPECT_EQ((*ended)->team, TeamId("t1"));
  EXPECT_EQ((*ended)->ended_at, at(6));
  EXPECT_EQ((*ended)->log, R"({"ü":2})");
}

TEST_P(StoreContract, EndedSandboxesAreForgottenByAge) {
  for (int i = 0; i < 450; ++i) {
    ASSERT_TRUE(store_->end_sandbox(make_ended("i" + std::to_string(i), at(i))));
  }
  ASSERT_TRUE(store_->forget_ended_sandboxes(at(449), UINT64_MAX));
  EXPECT_FALSE(store_->find_ended_sandbox(SandboxId("i0")).value());
  EXPECT_FALSE(store_->find_ended_sandbox(SandboxId("i448")).value());
  EXPECT_TRUE(store_->find_ended_sandbox(SandboxId("i449")).value());
}

TEST_P(StoreContract, EndedSandboxesAreForgottenBySize) {
  ASSERT_TRUE(store_->end_sandbox(make_ended("new", at(9), std::string(100, 'x'))));
  ASSERT_TRUE(store_->end_sandbox(make_ended("old", at(1), std::string(100, 'x'))));
  ASSERT_TRUE(store_->end_sandbox(make_ended("mid", at(5), std::string(100, 'x'))));
  ASSERT_TRUE(store_->forget_ended_sandboxes(at(0), 300));
  EXPECT_TRUE(store_->find_ended_sandbox(SandboxId("old")).value());
  ASSERT_TRUE(store_->forget_ended_sandboxes(at(0), 299));
  EXPECT_FALSE(store_->find_ended_sandbox(SandboxId("old")).value());
  EXPECT_TRUE(store_->find_ended_sandbox(SandboxId("mid")).value());
  ASSERT_TRUE(store_->forget_ended_sandboxes(at(0), 0));
  EXPECT_FALSE(store_->find_ended_sandbox(SandboxId("new")).value());
}

TEST_P(StoreContract, SandboxesAreListedOldestFirst) {
  Sandbox young = make_sandbox("a");
  young.started_at = at(20);
  Sandbox old = make_sandbox("b");
  old.started_at = at(10);
  ASSERT_TRUE(store_->put_sandbox(young));
  ASSERT_TRUE(store_->put_sandbox(old));
  EXPECT_EQ(store_->list_sandboxes()->front().id, SandboxId("b"));
}

KeyedCreate make_keyed(const std::string& team, const std::string& key, WallTime begun_at) {
  return KeyedCreate{.team = TeamId(team),
                     .key = key,
                     .fingerprint = "asked",
                     .sandbox = SandboxId("i1"),
                     .answer = std::nullopt,
                     .begun_at = begun_at};
}

TEST_P(StoreContract, KeyOfACreateIsClaimedOnce) {
  const KeyedCreate first = make_keyed("t1", "k", at(5));
  EXPECT_FALSE(store_->begin_keyed_create(first, at(0)).value());
  KeyedCreate second = make_keyed("t1", "k", at(6));
  second.fingerprint = "something else";
  const auto known = store_->begin_keyed_create(second, at(0));
  ASSERT_TRUE(known && *known);
  EXPECT_EQ((*known)->team, TeamId("t1"));
  EXPECT_EQ((*known)->key, "k");
  EXPECT_EQ((*known)->fingerprint, "asked");
  EXPECT_EQ((*known)->sandbox, SandboxId("i1"));
  EXPECT_EQ((*known)->answer, std::nullopt);
  EXPECT_EQ((*known)->begun_at, at(5));
}

TEST_P(StoreContract, KeysOfCreatesBelongToTheirTeam) {
  EXPECT_FALSE(store_->begin_keyed_create(make_keyed("t1", "k", at(5)), at(0)).value());
  EXPECT_FALSE(store_->begin_keyed_create(make_keyed("t2", "k", at(5)), at(0)).value());
  EXPECT_FALSE(store_->begin_keyed_create(make_keyed("t1", "k2", at(5)), at(0)).value());
}

TEST_P(StoreContract, AnsweredCreateKeepsItsAnswer) {
  const KeyedCreate record = make_keyed("t1", "k", at(5));
  ASSERT_TRUE(store_->begin_keyed_create(record, at(0)));
  ASSERT_TRUE(store_->finish_keyed_create(TeamId("t1"), "k", R"({"sandboxID":"ü"})"));
  // Too late: it is answered.
  ASSERT_TRUE(store_->release_keyed_create(TeamId("t1"), "k"));
  const auto known = store_->begin_keyed_create(record, at(0));
  ASSERT_TRUE(known && *known);
  EXPECT_EQ((*known)->answer, R"({"sandboxID":"ü"})");
  const auto unknown = store_->finish_keyed_create(TeamId("t2"), "k", "");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
}

TEST_P(StoreContract, ReleasedKeyOfACreateIsFreeAgain) {
  const KeyedCreate record = make_keyed("t1", "k", at(5));
  ASSERT_TRUE(store_->begin_keyed_create(record, at(0)));
  ASSERT_TRUE(store_->release_keyed_create(TeamId("t1"), "k"));
  ASSERT_TRUE(store_->release_keyed_create(TeamId("t1"), "k"));
  EXPECT_FALSE(store_->begin_keyed_create(record, at(0)).value());
}

TEST_P(StoreContract, UnansweredCreatesAreListed) {
  EXPECT_TRUE(store_->list_unanswered_creates().value().empty());
  for (const char* key : {"answered", "open"}) {
    ASSERT_TRUE(store_->begin_keyed_create(make_keyed("t1", key, at(5)), at(0)));
  }
  ASSERT_TRUE(store_->finish_keyed_create(TeamId("t1"), "answered", "answer"));
  const auto listed = store_->list_unanswered_creates();
  ASSERT_TRUE(listed);
  ASSERT_EQ(listed->size(), 1u);
  EXPECT_EQ(listed->front().team, TeamId("t1"));
  EXPECT_EQ(listed->front().key, "open");
  EXPECT_EQ(listed->front().fingerprint, "asked");
  EXPECT_EQ(listed->front().sandbox, SandboxId("i1"));
  EXPECT_EQ(listed->front().answer, std::nullopt);
  EXPECT_EQ(listed->front().begun_at, at(5));
}

TEST_P(StoreContract, OldKeyedCreatesAreForgotten) {
  ASSERT_TRUE(store_->begin_keyed_create(make_keyed("t1", "old", at(5)), at(0)));
  ASSERT_TRUE(store_->finish_keyed_create(TeamId("t1"), "old", "answer"));
  ASSERT_TRUE(store_->begin_keyed_create(make_keyed("t1", "young", at(6)), at(0)));
  // Any later begin forgets them, not only one with the same key.
  ASSERT_TRUE(store_->begin_keyed_create(make_keyed("t1", "next", at(20)), at(6)));
  EXPECT_FALSE(store_->begin_keyed_create(make_keyed("t1", "old", at(20)), at(0)).value());
  EXPECT_TRUE(store_->begin_keyed_create(make_keyed("t1", "young", at(20)), at(0)).value());
}

TEST_P(StoreContract, SettingsAreReplaced) {
  EXPECT_EQ(store_->find_setting("agent.current").value(), std::nullopt);
  ASSERT_TRUE(store_->put_setting("agent.current", "one"));
  ASSERT_TRUE(store_->put_setting("agent.current", ""));
  EXPECT_EQ(store_->find_setting("agent.current").value(), "");
}

TEST_P(StoreContract, ManyThreadsMayWriteAtOnce) {
  constexpr int kThreads = 4;
  constexpr int kEach = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < kEach; ++i) {
        const std::string id = std::to_string(t) + "x" + std::to_string(i);
        EXPECT_TRUE(store_->put_sandbox(make_sandbox(id)));
        EXPECT_TRUE(store_->set_sandbox_end(SandboxId(id), at(i)));
        EXPECT_TRUE(store_->list_sandboxes());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(store_->list_sandboxes()->size(), size_t{kThreads * kEach});
}

INSTANTIATE_TEST_SUITE_P(Stores, StoreContract, ::testing::Values("sqlite", "memory"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace alcove::store

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/agent_state.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "agent/metrics.h"
#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

using Variables = std::map<std::string, std::string>;

class AgentStateTest : public ::testing::Test {
 protected:
  testing::TempDir dir_;
  AgentState state_{dir_ / "run/e2b", "/bin:/usr/bin"};
  User user_{"user", 1000, 1000, "/home/user", {1000}};
};

TEST_F(AgentStateTest, StartsOpenAndAsRoot) {
  EXPECT_FALSE(state_.access_token());
  EXPECT_EQ(state_.default_user(), "root");
  EXPECT_EQ(state_.global_variables(), (Variables{{"E2B_SANDBOX", "true"}}));
}

TEST_F(AgentStateTest, EnvironmentGoesFromUserToGlobalToOwn) {
  InitRequest request;
  request.env_vars =
      Variables{{"HOME", "/elsewhere"}, {"A", "global"}, {"E2B_SANDBOX_ID", "forged"}};
  request.sandbox_id = "iabc";
  state_.apply(request);
  EXPECT_EQ(state_.environment(user_, {{"A", "own"}, {"PATH", "/x"}}),
            (std::vector<std::string>{"A=own", "E2B_SANDBOX=true", "E2B_SANDBOX_ID=iabc",
                                      "HOME=/elsewhere", "LOGNAME=user", "PATH=/x", "USER=user"}));
  EXPECT_EQ(state_.environment(user_, {})[4], "LOGNAME=user");
  EXPECT_EQ(state_.environment(user_, {})[5], "PATH=/bin:/usr/bin");
}

TEST_F(AgentStateTest, VariablesAreReplacedOrKept) {
  InitRequest request;
  request.env_vars = Variables{{"A", "1"}};
  state_.apply(request);
  state_.apply({});
  EXPECT_EQ(state_.global_variables().at("A"), "1");
  request.env_vars = Variables{{"B", "2"}};
  state_.apply(request);
  EXPECT_FALSE(state_.global_variables().contains("A"));
}

TEST_F(AgentStateTest, IdentityIsWrittenToFiles) {
  InitRequest request;
  request.sandbox_id = "iabc";
  request.template_id = "tpl";
  request.team_id = "team";
  state_.apply(request);
  EXPECT_EQ(testing::read_text(dir_ / "run/e2b/.E2B_SANDBOX"), "true");
  EXPECT_EQ(testing::read_text(dir_ / "run/e2b/.E2B_SANDBOX_ID"), "iabc");
  EXPECT_EQ(testing::read_text(dir_ / "run/e2b/.E2B_TEMPLATE_ID"), "tpl");
  EXPECT_EQ(testing::read_text(dir_ / "run/e2b/.E2B_TEAM_ID"), "team");
  struct stat info{};
  ASSERT_EQ(::stat((dir_ / "run/e2b/.E2B_TEAM_ID").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0444u);
  request.sandbox_id = "idef";
  state_.apply(request);
  EXPECT_EQ(testing::read_text(dir_ / "run/e2b/.E2B_SANDBOX_ID"), "idef");
}

TEST_F(AgentStateTest, FirstControlTokenIsFixed) {
  InitRequest first;
  first.control_token = "c1";
  ASSERT_TRUE(state_.authorize_init(first, std::nullopt));
  state_.apply(first);
  InitRequest second;
  second.control_token = "c2";
  EXPECT_FALSE(state_.authorize_init(second, std::nullopt));
  EXPECT_FALSE(state_.authorize_init(second, "c2"));
  ASSERT_TRUE(state_.authorize_init(second, "c1"));
  state_.apply(second);
  EXPECT_TRUE(state_.authorize_init({}, "c1"));
  EXPECT_FALSE(state_.authorize_init({}, "c2"));
}

TEST_F(AgentStateTest, ControlTokenMayChangeTheAccessToken) {
  InitRequest request;
  request.control_token = "c";
  request.access_token = "a1";
  state_.apply(request);
  request.access_token = "a2";
  ASSERT_TRUE(state_.authorize_init(request, "c"));
  state_.apply(request);
  EXPECT_EQ(state_.access_token(), "a2");
}

TEST_F(AgentStateTest, WithoutControlTokenTheAccessTokenDecides) {
  InitRequest request;
  request.access_token = "a";
  ASSERT_TRUE(state_.authorize_init(request, std::nullopt));
  state_.apply(request);
  EXPECT_TRUE(state_.authorize_init(request, std::nullopt));
  EXPECT_FALSE(state_.authorize_init({}, std::nullopt));
  request.access_token = "b";
  EXPECT_FALSE(state_.authorize_init(request, std::nullopt));
}

TEST_F(AgentStateTest, OlderRequestsChangeNothing) {
  InitRequest request;
  request.timestamp = WallTime(std::chrono::seconds(100));
  request.default_user = "new";
  state_.apply(request);
  request.timestamp = WallTime(std::chrono::seconds(50));
  request.default_user = "old";
  state_.apply(request);
  EXPECT_EQ(state_.default_user(), "new");
  request.timestamp = WallTime(std::chrono::seconds(100));
  request.default_user = "same";
  state_.apply(request);
  EXPECT_EQ(state_.default_user(), "same");
}

TEST(Metrics, ReadsTheKernelsFiles) {
  const auto times = parse_cpu_times("cpu  10 1 2 100 5 0 3 4 9 9\ncpu0 1 2 3\n");
  ASSERT_TRUE(times);
  EXPECT_EQ(times->total, 125u);
  EXPECT_EQ(times->idle, 105u);
  EXPECT_FALSE(parse_cpu_times("cpu 1 2\n"));
  EXPECT_FALSE(parse_cpu_times(""));
  constexpr char kMeminfo[] = "MemTotal:       2048 kB\nCachedX:  9 kB\nCached:  3 kB\n";
  EXPECT_EQ(parse_memory_field(kMeminfo, "MemTotal"), 2048u * 1024);
  EXPECT_EQ(parse_memory_field(kMeminfo, "Cached"), 3u * 1024);
  EXPECT_EQ(parse_memory_field(kMeminfo, "MemAvailable"), 0u);
}

TEST(Metrics, AnswerHoldsAllFields) {
  MetricsSource source;
  (void)source.read();
  const std::string text = source.read();
  for (const char* name : {"ts", "cpu_count", "cpu_used_pct", "mem_total", "mem_used", "mem_cache",
                           "mem_total_mib", "mem_used_mib", "disk_used", "disk_total"}) {
    EXPECT_NE(text.find(std::string("\"") + name + "\":"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace alcove::agent

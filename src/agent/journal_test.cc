// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "agent/journal_message.h"
#include "agent/process_journal.h"
#include "agent/testing/agent_fixture.h"

namespace alcove::agent {
namespace {

using testing::AgentTest;

std::string command_of(const ProcessConfig& process) {
  ProcessJournal journal;
  journal.started(process, 7);
  return journal.lines().front().command;
}

TEST(ProcessJournal, ShowsTheCommandLineUpToALimit) {
  EXPECT_EQ(command_of({"/bin/echo", {"a b", "", "c"}, {}, {}}), "/bin/echo a b  c");
  EXPECT_EQ(command_of({"x", {}, {}, {}}), "x");
  const std::string huge(1 << 20, 'y');
  EXPECT_EQ(command_of({huge, {huge}, {}, {}}), huge.substr(0, kMaxJournalCommand));
  EXPECT_EQ(command_of({"x", {huge, huge}, {}, {}}), "x " + huge.substr(0, kMaxJournalCommand - 2));
}

TEST(ProcessJournal, KeepsTheLastLines) {
  ProcessJournal journal;
  for (uint32_t pid = 1; pid <= 2 * kMaxJournalLines; ++pid) journal.ended(pid, 0);
  ASSERT_EQ(journal.lines().size(), kMaxJournalLines);
  EXPECT_EQ(journal.lines().front().pid, kMaxJournalLines + 1);
  EXPECT_EQ(journal.lines().back().pid, 2 * kMaxJournalLines);
}

TEST(ProcessJournal, LongCommandsTakeNoMoreThanTheirShare) {
  ProcessJournal journal;
  const ProcessConfig process{std::string(kMaxJournalCommand, 'z'), {}, {}, {}};
  for (uint32_t pid = 1; pid <= kMaxJournalLines; ++pid) journal.started(process, pid);
  size_t bytes = 0;
  for (const JournalLine& line : journal.lines()) bytes += line.command.size();
  EXPECT_LE(bytes, 128u << 10);
  EXPECT_GE(bytes, 100u << 10);
  EXPECT_EQ(journal.lines().back().pid, kMaxJournalLines);
}

TEST(JournalMessage, RoundTrip) {
  const WallTime time(std::chrono::microseconds(1'800'000'000'123'456));
  const std::deque<JournalLine> lines = {{time, 12, std::nullopt, "echo \"ünï\"\n\x01"},
                                         {time, 12, 256, ""}};
  const auto decoded = decode_journal(encode_journal(lines));
  ASSERT_TRUE(decoded) << decoded.error().message();
  ASSERT_EQ(decoded->size(), 2u);
  EXPECT_EQ((*decoded)[0].time, time);
  EXPECT_EQ((*decoded)[0].command, lines[0].command);
  EXPECT_FALSE((*decoded)[0].wait_status);
  EXPECT_EQ((*decoded)[1].wait_status, 256);
  EXPECT_TRUE(decode_journal(encode_journal({}))->empty());
}

TEST(JournalMessage, TheLargestFitsTheBody) {
  const JournalLine largest{WallTime::min(), UINT32_MAX, std::nullopt,
                            std::string(kMaxJournalCommand, '\x01')};
  const std::deque<JournalLine> lines(kMaxJournalLines, largest);
  EXPECT_LE(encode_journal(lines).size(), kMaxJournalBody);
}

TEST(JournalMessage, HostileJournalsAreCutOrRefused) {
  const std::string line = R"({"time":1,"pid":1,"command":")" + std::string(2000, 'x') + "\"}";
  std::string body = "{\"lines\":[";
  for (size_t i = 0; i < kMaxJournalLines + 5; ++i) body += (i == 0 ? "" : ",") + line;
  const auto cut = decode_journal(body + "]}");
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->size(), kMaxJournalLines);
  EXPECT_EQ(cut->front().command.size(), kMaxJournalCommand);
  std::string odd = "a";
  while (odd.size() <= kMaxJournalCommand) odd += "ü";
  const auto whole = decode_journal(encode_journal({{WallTime{}, 1, std::nullopt, odd}}));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->front().command, odd.substr(0, kMaxJournalCommand - 1));
  for (const char* bad :
       {"", "[]", R"({"lines":3})", R"({"lines":[3]})", R"({"lines":[{"time":"soon"}]})",
        R"({"lines":[{"pid":-1}]})", R"({"lines":[{"status":99999999999}]})"}) {
    EXPECT_FALSE(decode_journal(bad)) << bad;
  }
}

class JournalTest : public AgentTest {
 protected:
  std::vector<JournalLine> journal() {
    const auto connection = connect();
    auto lines = run(read_journal(*connection, "control", std::chrono::seconds(5)));
    EXPECT_TRUE(lines) << lines.error().message();
    return lines ? *std::move(lines) : std::vector<JournalLine>();
  }
};

TEST_F(JournalTest, HasStartAndEndOfEachProcessButNotItsOutput) {
  InitRequest request;
  request.control_token = "control";
  request.access_token = "secret";
  init(request);
  EXPECT_TRUE(journal().empty());
  const http::Headers token = {{"X-Access-Token", "secret"}};
  const uint32_t first = run_shell("echo hello; exit 3", "", token).pid;
  const uint32_t second = run_shell("kill -9 $$", "", token).pid;
  const auto lines = journal();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(lines[0].pid, first);
  EXPECT_EQ(lines[0].command, "/bin/sh -c echo hello; exit 3");
  EXPECT_FALSE(lines[0].wait_status);
  EXPECT_EQ(lines[1].pid, first);
  EXPECT_EQ(lines[1].wait_status, W_EXITCODE(3, 0));
  EXPECT_EQ(lines[2].pid, second);
  EXPECT_EQ(lines[3].wait_status, W_EXITCODE(0, 9));
  for (size_t i = 1; i < lines.size(); ++i) EXPECT_LE(lines[i - 1].time, lines[i].time);
  EXPECT_LT(SystemClock().now() - lines[0].time, std::chrono::minutes(1));
}

TEST_F(JournalTest, IsForTheHostOnly) {
  // Before the introduction there is no host to show it to.
  EXPECT_EQ(call("GET", "/journal").status, 401);
  EXPECT_EQ(call("GET", "/journal", {{"X-Alcove-Control", ""}}).status, 401);
  InitRequest request;
  request.control_token = "control";
  init(request);
  EXPECT_EQ(call("GET", "/journal").status, 401);
  EXPECT_EQ(call("GET", "/journal", {{"X-Alcove-Control", "wrong"}}).status, 401);
  EXPECT_EQ(call("GET", "/journal", {{"X-Alcove-Control", "control"}}).status, 200);
  EXPECT_EQ(call("POST", "/journal", {{"X-Alcove-Control", "control"}}, "{}").status, 405);
}

}  // namespace
}  // namespace alcove::agent

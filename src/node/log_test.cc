// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/strings.h"
#include "node/log_entry.h"
#include "node/log_lines.h"

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

const WallTime kTime(std::chrono::microseconds(1'800'000'000'123'456));

LogEntry process_start(uint32_t pid, std::string command) {
  return process_line({kTime, pid, std::nullopt, std::move(command)});
}

TEST(Log, ComesBackAsItWasKept) {
  LogEntry odd = ended_line(kTime + 1s, Ending::kDied);
  odd.message = "\"ünï\" \n \x01";
  odd.fields["empty"] = "";
  const Log log = {process_start(1, "echo"), odd};
  const auto again = decode_log(encode_log(log, 1 << 20));
  ASSERT_TRUE(again) << again.error().message();
  ASSERT_EQ(again->size(), 2u);
  for (size_t i = 0; i < log.size(); ++i) {
    EXPECT_EQ((*again)[i].time, log[i].time);
    EXPECT_EQ((*again)[i].level, log[i].level);
    EXPECT_EQ((*again)[i].message, log[i].message);
    EXPECT_EQ((*again)[i].fields, log[i].fields);
  }
  EXPECT_TRUE(decode_log(encode_log({}, 0))->empty());
  for (const char* bad : {"", "{}", "[1]", "[{}]", R"([{"time":"x"}])",
                          R"([{"time":1,"level":"info","message":"m","fields":[]}])"}) {
    EXPECT_FALSE(decode_log(bad)) << bad;
  }
}

TEST(Log, OfTooMuchTheOldestProcessesAreLeftOut) {
  Log log = {timeout_line(kTime, kTime)};
  for (uint32_t pid = 0; pid < 1000; ++pid) log.push_back(process_start(pid, "some command"));
  log.push_back(ended_line(kTime, Ending::kRequest));
  const std::string text = encode_log(log, 20'000);
  EXPECT_LT(text.size(), 21'000u);
  EXPECT_GT(text.size(), 18'000u);
  const auto kept = decode_log(text);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->front().fields.at("event_type"), "sandbox_timeout_set");
  EXPECT_EQ(kept->back().fields.at("event_type"), "sandbox_ended");
  EXPECT_EQ((*kept)[kept->size() - 2].fields.at("pid"), "999");
  EXPECT_EQ((*kept)[1].fields.at("pid"), std::to_string(1002 - kept->size()));
}

TEST(LogLines, SayWhatHappenedInWordsAndFields) {
  store::Sandbox sandbox;
  sandbox.template_id = TemplateId("tpl");
  sandbox.template_alias = "base";
  sandbox.started_at = kTime;
  EXPECT_EQ(created_line(sandbox).message, "sandbox created from template base");
  EXPECT_EQ(created_line(sandbox).time, kTime);
  sandbox.template_alias.clear();
  EXPECT_EQ(created_line(sandbox).message, "sandbox created from template tpl");
  EXPECT_EQ(timeout_line(kTime, kTime).message,
            "timeout set: the sandbox ends at 2027-01-15T08:00:00.123456Z");
  EXPECT_EQ(ended_line(kTime, Ending::kTimeout).fields.at("kill_reason"), "timeout");
  EXPECT_EQ(ended_line(kTime, Ending::kDied).level, LogLevel::kError);

  const LogEntry started = process_start(12, "sleep 5");
  EXPECT_EQ(started.message, "process 12 started: sleep 5");
  EXPECT_EQ(started.fields, (std::map<std::string, std::string>{{"logger", "process"},
                                                                {"event_type", "process_start"},
                                                                {"command", "sleep 5"},
                                                                {"pid", "12"}}));
  const LogEntry failed = process_line({kTime, 12, W_EXITCODE(3, 0), ""});
  EXPECT_EQ(failed.message, "process 12 ended with exit code 3");
  EXPECT_EQ(failed.fields.at("exit_code"), "3");
  const LogEntry killed = process_line({kTime, 12, W_EXITCODE(0, 9), ""});
  EXPECT_EQ(killed.message, "process 12 ended by signal 9");
  EXPECT_EQ(killed.fields.at("signal"), "9");
}

}  // namespace
}  // namespace alcove::node

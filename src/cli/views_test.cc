// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json/parse.hpp>

#include "base/time_format.h"
#include "cli/completion.h"

namespace alcove::cli {
namespace {

namespace json = boost::json;
using ::testing::HasSubstr;
using ::testing::Not;

const WallTime kNow = *parse_rfc3339("2026-11-18T08:00:00Z");

constexpr const char* kSandbox = R"({
    "sandboxID":"i0a","templateID":"tpl","alias":"base","state":"running","cpuCount":2,
    "memoryMB":1024,"diskSizeMB":10240,"startedAt":"2026-11-18T07:59:00Z",
    "endAt":"2026-11-18T08:05:00Z","metadata":{"job":"42"},"isolation":"jail",
    "envdVersion":"0.6.13","envdAccessToken":"secret"})";

TEST(Views, SandboxesAreATable) {
  json::array list{json::parse(kSandbox)};
  EXPECT_EQ(show_sandboxes(list, kNow),
            "SANDBOX  TEMPLATE  STATE    CPUS  MEMORY  STARTED  ENDS   METADATA\n"
            "i0a      base      running  2     1 GiB   1m ago   in 5m  job=42\n");
}

TEST(Views, MetadataCannotActOnTheTerminal) {
  json::object sandbox = json::parse(kSandbox).as_object();
  sandbox["metadata"] = {{"k", "\x1b]0;title\x07"}};
  EXPECT_THAT(show_sandboxes({sandbox}, kNow), Not(HasSubstr("\x1b")));
  EXPECT_THAT(show_sandbox(sandbox, kNow), Not(HasSubstr("\x1b")));
}

TEST(Views, InfoShowsFactsAndNoSecret) {
  const std::string text = show_sandbox(json::parse(kSandbox).as_object(), kNow);
  EXPECT_THAT(text, HasSubstr("ends:      2026-11-18T08:05:00Z (in 5m)\n"));
  EXPECT_THAT(text, HasSubstr("disk:      10 GiB\n"));
  EXPECT_THAT(text, HasSubstr("internet:  yes\n"));
  EXPECT_THAT(text, Not(HasSubstr("secret")));
}

TEST(Views, TemplatesAreATable) {
  const json::value list = json::parse(R"([{"templateID":"tpl","names":["base","b"],"cpuCount":2,
      "memoryMB":512,"diskSizeMB":1024,"buildStatus":"ready","updatedAt":"2026-11-18T06:00:00Z"}])");
  EXPECT_EQ(show_templates(list.as_array(), kNow),
            "TEMPLATE  ID   CPUS  MEMORY   DISK   STATUS  UPDATED\n"
            "base, b   tpl  2     512 MiB  1 GiB  ready   2h ago\n");
}

TEST(Views, MetricsStandBelowTheirHeader) {
  const json::value sample = json::parse(R"({"timestamp":"2026-11-18T08:00:00Z",
      "timestampUnix":1795000000,"cpuCount":2,"cpuUsedPct":12.34,"memUsed":1048576,
      "memTotal":1073741824,"memCache":0,"diskUsed":2097152,"diskTotal":10737418240})");
  const std::string header = metrics_header();
  const std::string line = show_metric(sample.as_object());
  EXPECT_EQ(line.find("12.3%"), header.find("CPU"));
  EXPECT_EQ(line.find("1 MiB / 1 GiB"), header.find("MEMORY"));
  EXPECT_EQ(line.find("2 MiB / 10 GiB"), header.find("DISK"));
}

TEST(Views, LogEntriesAreOneLineEach) {
  const json::value entry = json::parse(R"({"timestamp":"2026-11-18T08:00:00Z","level":"info",
      "message":"process started\n\u001b[2J","fields":{"pid":"7","cmd":"sh"}})");
  EXPECT_EQ(show_log_entry(entry.as_object()),
            "2026-11-18T08:00:00Z  INFO   process started\\x0a\\x1b[2J  pid=7 cmd=sh\n");
}

TEST(Views, AnswersOfAnotherShapeAreShownAsFarAsTheyGo) {
  EXPECT_THAT(show_sandboxes({1, "x", json::object()}, kNow), HasSubstr("-  "));
  EXPECT_THAT(show_metric({}), HasSubstr("0.0%"));
  EXPECT_NE(show_log_entry({}), "");
  EXPECT_NE(show_sandbox({}, kNow), "");
}

TEST(Completion, OffersCommandsAndOptionsOfTheTree) {
  const CommandTree tree{.name = "alcove",
                         .help = "",
                         .options = {},
                         .commands = {{.name = "key",
                                       .help = "it's keys",
                                       .options = {{.name = "--team", .help = "whose"}},
                                       .commands = {},
                                       .takes_sandboxes = true}}};
  const auto bash = completion_script("bash", tree);
  ASSERT_TRUE(bash);
  EXPECT_THAT(*bash, HasSubstr(R"(" key") words="--team" ids=yes ;;)"));
  EXPECT_THAT(*bash, Not(HasSubstr("@")));
  EXPECT_THAT(*completion_script("zsh", tree), HasSubstr(R"(commands+=('key:it'\''s keys'))"));
  EXPECT_THAT(*completion_script("fish", tree), HasSubstr("-l team -d 'whose'"));
  EXPECT_FALSE(completion_script("tcsh", tree));
}

}  // namespace
}  // namespace alcove::cli

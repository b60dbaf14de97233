// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/sandboxes_observe.h"

#include "api/testing/api_fixture.h"

namespace alcove::api::testing {
namespace {

using namespace std::chrono_literals;

class SandboxesObserve : public ApiTest {
 protected:
  static node::Measurement measured(WallTime time) {
    return {.time = time,
            .cpu_used_percent = 12.3456,
            .memory_used_bytes = 1000,
            .memory_cache_bytes = 200,
            .disk_used_bytes = 30};
  }
  node::LogEntry line(std::chrono::microseconds after, std::string message,
                      node::LogLevel level = node::LogLevel::kInfo) {
    return {.time = clock_.now() + after,
            .level = level,
            .message = std::move(message),
            .fields = {{"logger", "process"}, {"pid", "7"}}};
  }
  std::vector<std::string> messages(const std::string& target) {
    const Reply reply = send("GET", target);
    EXPECT_EQ(reply.status, 200) << reply.text;
    std::vector<std::string> all;
    const json::object body = reply.object();
    for (const json::value& entry : body.at("logs").as_array()) {
      all.emplace_back(entry.as_object().at("message").as_string());
    }
    return all;
  }
  using Texts = std::vector<std::string>;
};

TEST_F(SandboxesObserve, MetricsHaveEveryField) {
  const auto sandbox = add_sandbox("i1");
  EXPECT_EQ(send("GET", "/sandboxes/i1/metrics").text, "[]");
  sandbox->add_measurement(measured(clock_.now()));
  const Reply reply = send("GET", "/sandboxes/i1-6532622b/metrics");
  EXPECT_EQ(reply.status, 200);
  const json::array list = reply.array();
  ASSERT_EQ(list.size(), 1u);
  const json::object expected{{"timestamp", "2027-01-15T08:00:00.123456Z"},
                              {"timestampUnix", 1'800'000'000},
                              {"cpuCount", 2},
                              {"cpuUsedPct", 12.35},
                              {"memUsed", 1000},
                              {"memTotal", 1024ull << 20},
                              {"memCache", 200},
                              {"diskUsed", 30},
                              {"diskTotal", 10ull << 30}};
  EXPECT_EQ(list[0].as_object(), expected) << reply.text;
}

TEST_F(SandboxesObserve, MetricsOfATimeRange) {
  const auto sandbox = add_sandbox("i1");
  for (int i = 0; i < 5; ++i) sandbox->add_measurement(measured(clock_.now() + i * 5s));
  const auto count = [&](const char* query) {
    return send("GET", std::string("/sandboxes/i1/metrics") + query).array().size();
  };
  EXPECT_EQ(count("?start=1800000005"), 4u);
  EXPECT_EQ(count("?start=1800000005&end=1800000010"), 2u);
  EXPECT_EQ(count("?end=1800000000"), 1u);
  EXPECT_EQ(count("?end=1799999999"), 0u);
  expect_error(send("GET", "/sandboxes/i1/metrics?start=2&end=1"), 400,
               "the start of the time range is later than its end");
  expect_error(send("GET", "/sandboxes/i1/metrics?start=soon"), 400,
               "validation error: 'start' must be a whole number from 0 to 253402300799");
}

TEST_F(SandboxesObserve, MetricsOfWhatIsNotThereAreEmpty) {
  const auto sandbox = add_sandbox("i1");
  sandbox->add_measurement(measured(clock_.now()));
  EXPECT_EQ(send("GET", "/sandboxes/unknown/metrics").text, "[]");
  EXPECT_EQ(send_as_other("GET", "/sandboxes/i1/metrics").text, "[]");
  expect_error(send("GET", "/sandboxes/BAD/metrics"), 400, "Invalid sandbox ID");
}

TEST_F(SandboxesObserve, BulkMetricsAreTheLatestOfEach) {
  const auto first = add_sandbox("i1");
  first->add_measurement(measured(clock_.now()));
  first->add_measurement(measured(clock_.now() + 5s));
  add_sandbox("i2")->add_measurement(measured(clock_.now()));
  add_sandbox("inew");
  const std::string target = "/sandboxes/metrics?sandbox_ids=i1,i2,inew,unknown";
  const json::object found = send("GET", target).object().at("sandboxes").as_object();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found.at("i1").as_object().at("timestampUnix"), 1'800'000'005);
  EXPECT_EQ(found.at("i2").as_object().at("timestampUnix"), 1'800'000'000);
  EXPECT_EQ(send_as_other("GET", target).text, R"({"sandboxes":{}})");
  expect_error(send("GET", "/sandboxes/metrics"), 400,
               "validation error: 'sandbox_ids' is required");
  expect_error(send("GET", "/sandboxes/metrics?sandbox_ids=i1,BAD"), 400, "Invalid sandbox ID");
}

TEST_F(SandboxesObserve, OldLogsHaveLinesThatAreJsonWithALevel) {
  node_.put_log(SandboxId("i1"), key_.team.id,
                {line(0us, "one \"ü\""), line(5ms, "two", node::LogLevel::kError)});
  const json::object body = send("GET", "/sandboxes/i1/logs").object();
  const json::array& lines = body.at("logs").as_array();
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].at("timestamp"), "2027-01-15T08:00:00.123456Z");
  const json::value parsed = json::parse(std::string(lines[0].at("line").as_string()));
  EXPECT_EQ(parsed.as_object(),
            (json::object{
                {"level", "info"}, {"message", "one \"ü\""}, {"logger", "process"}, {"pid", "7"}}));
  const json::array& entries = body.at("logEntries").as_array();
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[1].as_object(),
            (json::object{{"timestamp", "2027-01-15T08:00:00.128456Z"},
                          {"level", "error"},
                          {"message", "two"},
                          {"fields", json::object{{"logger", "process"}, {"pid", "7"}}}}));
}

TEST_F(SandboxesObserve, OldLogsGoOnAfterTheLastMillisecond) {
  node_.put_log(SandboxId("i1"), key_.team.id,
                {line(0us, "one"), line(500us, "same"), line(1ms, "two"), line(2ms, "three")});
  const auto count = [&](const char* query) {
    const Reply reply = send("GET", std::string("/sandboxes/i1/logs") + query);
    return reply.object().at("logs").as_array().size();
  };
  EXPECT_EQ(count("?start=1800000000123"), 4u);
  EXPECT_EQ(count("?start=1800000000124"), 2u);
  EXPECT_EQ(count("?start=1800000000126"), 0u);
  EXPECT_EQ(count("?limit=3"), 3u);
  EXPECT_EQ(count("?limit=0"), 0u);
  const Reply first = send("GET", "/sandboxes/i1/logs?limit=1");
  EXPECT_EQ(first.object().at("logEntries").as_array()[0].at("message"), "one");
}

TEST_F(SandboxesObserve, NewLogsCanBeSearched) {
  node_.put_log(SandboxId("i1"), key_.team.id,
                {line(0us, "one"), line(1ms, "Two", node::LogLevel::kDebug),
                 line(2ms, "three", node::LogLevel::kWarn), line(3ms, "four")});
  const std::string logs = "/v2/sandboxes/i1/logs";
  EXPECT_EQ(messages(logs), (Texts{"four", "three", "Two", "one"}));
  EXPECT_EQ(messages(logs + "?direction=forward&limit=2"), (Texts{"one", "Two"}));
  EXPECT_EQ(messages(logs + "?limit=1"), Texts{"four"});
  EXPECT_EQ(messages(logs + "?cursor=1800000000124"), (Texts{"Two", "one"}));
  EXPECT_EQ(messages(logs + "?cursor=1800000000124&direction=forward"),
            (Texts{"Two", "three", "four"}));
  EXPECT_EQ(messages(logs + "?level=info"), (Texts{"four", "three", "one"}));
  EXPECT_EQ(messages(logs + "?level=error"), Texts{});
  EXPECT_EQ(messages(logs + "?search=o"), (Texts{"four", "Two", "one"}));
  EXPECT_EQ(messages(logs + "?search=two"), Texts{});
  for (const char* bad : {"?limit=1001", "?direction=up", "?level=loud", "?cursor=now"}) {
    EXPECT_EQ(send("GET", logs + bad).status, 400) << bad;
  }
}

TEST_F(SandboxesObserve, LogsOfWhatIsNotThere) {
  node_.put_log(SandboxId("i1"), key_.team.id, {line(0us, "one")});
  for (const std::string prefix : {"/sandboxes/", "/v2/sandboxes/"}) {
    expect_error(send("GET", prefix + "unknown/logs"), 404, "sandbox 'unknown' was not found");
    expect_error(send_as_other("GET", prefix + "i1/logs"), 404, "sandbox 'i1' was not found");
    expect_error(send("GET", prefix + "BAD/logs"), 400, "Invalid sandbox ID");
  }
  node_.read_log_error = Error(Code::kInternal, "disk on fire");
  const Reply failed = send("GET", "/sandboxes/i1/logs");
  EXPECT_EQ(failed.status, 500);
  EXPECT_EQ(failed.text.find("fire"), std::string::npos);
}

}  // namespace
}  // namespace alcove::api::testing

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jail/jail_record.h"
#include "jail/launch_protocol.h"
#include "jail/lean_root.h"
#include "jail/machine_look.h"

namespace alcove::jail {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST(LaunchProtocol, BootRequestSurvivesTheWire) {
  BootRequest request;
  request.range = {3, 77};
  request.hostname = "name";
  request.layers = {"/data/a", "/data/b"};
  request.upper_dir = "/data/u";
  request.work_dir = "/data/w";
  request.agent_path = "/data/agent";
  request.agent_args = {"", "--flag"};
  request.ca_bundle = "/data/ca";
  request.interpreter_path = "/data/interpreter";
  request.agent_port = 49983;
  request.cpus = 2;
  request.memory_bytes = 1ull << 40;
  request.cgroup = "alcove/one";
  request.has_cgroup2 = true;
  const auto decoded = decode_request(encode(Request(request)));
  ASSERT_TRUE(decoded);
  const auto& copy = std::get<BootRequest>(*decoded);
  EXPECT_EQ(copy.range, request.range);
  EXPECT_EQ(copy.hostname, request.hostname);
  EXPECT_EQ(copy.layers, request.layers);
  EXPECT_EQ(copy.upper_dir, request.upper_dir);
  EXPECT_EQ(copy.work_dir, request.work_dir);
  EXPECT_EQ(copy.agent_path, request.agent_path);
  EXPECT_EQ(copy.agent_args, request.agent_args);
  EXPECT_EQ(copy.ca_bundle, request.ca_bundle);
  EXPECT_EQ(copy.interpreter_path, request.interpreter_path);
  EXPECT_EQ(copy.agent_port, request.agent_port);
  EXPECT_EQ(copy.cpus, request.cpus);
  EXPECT_EQ(copy.memory_bytes, request.memory_bytes);
  EXPECT_EQ(copy.cgroup, request.cgroup);
  EXPECT_TRUE(copy.has_cgroup2);
}

TEST(LaunchProtocol, PairsRequestSurvivesTheWire) {
  PairsRequest request;
  request.ranges = {{3, 77}, {3, 78}};
  request.rule_sets = {{std::string("\0rules", 6), true}, {"plain", false}};
  const auto decoded = decode_request(encode(Request(request)));
  ASSERT_TRUE(decoded);
  const auto& copy = std::get<PairsRequest>(*decoded);
  EXPECT_EQ(copy.ranges, request.ranges);
  ASSERT_EQ(copy.rule_sets.size(), 2u);
  EXPECT_EQ(copy.rule_sets[0].batch, request.rule_sets[0].batch);
  EXPECT_TRUE(copy.rule_sets[0].asks_first);
  EXPECT_FALSE(copy.rule_sets[1].asks_first);
  EXPECT_EQ(std::get<Done>(*decode_answer(encode(Answer(Done{1})))).rule_set, 1u);
}

TEST(JailRecord, OfASandboxBeforeTheRelayReachesNothing) {
  const auto record = parse_jail_record(
      R"({"pid":2,"start_time":1,"id_block":1,"id_range":1,"pool_key":"","cgroup_prefix":""})");
  ASSERT_TRUE(record);
  EXPECT_EQ(record->egress.reach, network::EgressPolicy::Reach::kNone);
}

TEST(LaunchProtocol, RefusesEveryCutAndAnExtraByte) {
  BootRequest request;
  request.layers = {"/data/a"};
  const std::string whole = encode(Request(request));
  for (size_t size = 0; size < whole.size(); ++size) {
    EXPECT_FALSE(decode_request(whole.substr(0, size))) << size;
  }
  EXPECT_FALSE(decode_request(whole + "x"));
  EXPECT_FALSE(decode_request(std::string(8, '\xff')));
  EXPECT_FALSE(decode_request(std::string("\1\0\0\0\0\0\0\0", 8) + std::string(8, '\xff')));
}

TEST(LaunchProtocol, FailureNamesStepAndObject) {
  const auto decoded = decode_answer(encode(Answer(StepFailed{"mount overlay", "/l", ENOSPC})));
  ASSERT_TRUE(decoded);
  const Error error = to_error(std::get<StepFailed>(*decoded));
  EXPECT_EQ(error.error_number(), ENOSPC);
  EXPECT_THAT(error.message(), StartsWith("mount overlay (/l): "));
}

TEST(LeanPath, TranslatesOnlyWhatLiesBelow) {
  const std::vector<std::string> extra = {"/cache"};
  EXPECT_EQ(*to_lean_path("/var/a/x", "/var/a", extra), "/data/x");
  EXPECT_EQ(*to_lean_path("/cache/l/1", "/var/a", extra), "/dirs/0/l/1");
  EXPECT_EQ(*to_lean_path("/var/a", "/var/a", extra), "/data");
  EXPECT_FALSE(to_lean_path("/var/ab", "/var/a", extra));
  EXPECT_FALSE(to_lean_path("/etc/passwd", "/var/a", extra));
  EXPECT_FALSE(to_lean_path("/var/a/../../etc/passwd", "/var/a", extra));
}

TEST(JailRecord, SurvivesJsonAndRefusesNonsense) {
  const JailRecord record{.pid = 42,
                          .start_time = UINT64_MAX,
                          .range = {5, 6},
                          .pool_key = "build \"x\"",
                          .cgroup_prefix = "alcove",
                          .egress = {network::EgressPolicy::Reach::kNone}};
  const auto copy = parse_jail_record(to_json(record));
  ASSERT_TRUE(copy);
  EXPECT_EQ(copy->pid, 42);
  EXPECT_EQ(copy->start_time, UINT64_MAX);
  EXPECT_EQ(copy->range, record.range);
  EXPECT_EQ(copy->pool_key, record.pool_key);
  EXPECT_EQ(copy->cgroup_prefix, record.cgroup_prefix);
  EXPECT_EQ(copy->egress, record.egress);
  EXPECT_FALSE(parse_jail_record("[]"));
  EXPECT_FALSE(parse_jail_record("{\"pid\": \"1\"}"));
  JailRecord init = record;
  init.pid = 1;
  EXPECT_FALSE(parse_jail_record(to_json(init)));
}

TEST(MachineLook, CpuinfoHasAsManyProcessorsAsTheSandbox) {
  const std::string host =
      "processor\t: 0\nsiblings\t: 4\ncpu cores\t: 4\n\nprocessor\t: 1\nsiblings\t: 4\n\n"
      "processor\t: 2\nsiblings\t: 4\n\n";
  EXPECT_EQ(look_of_cpuinfo(host, 1), "processor\t: 0\nsiblings\t: 1\ncpu cores\t: 1\n\n");
  const std::string two = look_of_cpuinfo(host, 2);
  EXPECT_THAT(two, HasSubstr("processor\t: 1\nsiblings\t: 2\n"));
  EXPECT_THAT(two, Not(HasSubstr("processor\t: 2")));
}

TEST(MachineLook, TellsTheLimits) {
  const std::string memory = look_of_meminfo(512ull << 20);
  EXPECT_THAT(memory, StartsWith("MemTotal:          524288 kB\nMemFree:           522240 kB\n"));
  EXPECT_THAT(memory, HasSubstr("SwapTotal:              0 kB\n"));
  EXPECT_EQ(look_of_cpu_list(1), "0\n");
  EXPECT_EQ(look_of_cpu_list(4), "0-3\n");
  EXPECT_THAT(look_of_stat(2, 1234), HasSubstr("cpu1 0 0 0 0 0 0 0 0 0 0\nintr"));
  EXPECT_THAT(look_of_stat(2, 1234), HasSubstr("\nbtime 1234\n"));
}

}  // namespace
}  // namespace alcove::jail

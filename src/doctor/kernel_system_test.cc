// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/kernel_system.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "doctor/child_process.h"
#include "doctor/doctor.h"
#include "net/listener.h"

namespace alcove::doctor {
namespace {

std::string read(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(InChild, ErrorsAndDeathsAreValues) {
  EXPECT_TRUE(in_child([] { return 0; }));
  const auto failed = in_child([] { return EPERM; });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "Operation not permitted");
  EXPECT_FALSE(in_child([]() -> int { ::abort(); }));
}

// The machine that runs these tests runs sandboxes too, so that every attempt works; and none of
// them may leave anything behind.
TEST(ThisMachine, EverythingThatSandboxesNeedWorksAndLeavesNothing) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
#if __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer's thread in each child lets it make no user namespace";
#endif
  const std::string mounts = read("/proc/self/mountinfo");
  const auto machine = this_machine();
  for (const Feature feature :
       {Feature::kUserNamespace, Feature::kPidNamespace, Feature::kMountNamespace,
        Feature::kNetworkNamespace, Feature::kUtsNamespace, Feature::kIpcNamespace,
        Feature::kCgroupNamespace, Feature::kTimeNamespace, Feature::kOverlay, Feature::kSeccomp,
        Feature::kPidfd, Feature::kNftables, Feature::kReject, Feature::kTproxy, Feature::kQueue}) {
    const auto tried = machine->try_feature(feature);
    EXPECT_TRUE(tried) << static_cast<int>(feature) << ": " << tried.error().message();
  }
  const auto idmap = machine->try_idmap("/var/tmp");
  EXPECT_TRUE(idmap) << idmap.error().message();
  EXPECT_EQ(read("/proc/self/mountinfo"), mounts);
}

TEST(ThisMachine, AttemptsThatCannotWorkAreErrors) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root";
  // No file system of the kernel's own can be idmapped.
  EXPECT_FALSE(this_machine()->try_idmap("/proc"));
  EXPECT_FALSE(this_machine()->try_clone_into_cgroup("/nosuch"));
}

TEST(ThisMachine, ExaminesItself) {
  const auto machine = this_machine();
  const auto findings =
      examine(*machine, {.data_dir = "/var/tmp", .newest_format = 1, .listen = {{"127.0.0.1", 0}}});
  EXPECT_GT(findings.size(), 25u);
  for (const Finding& finding : findings) {
    EXPECT_FALSE(finding.name.empty());
    EXPECT_FALSE(finding.detail.empty()) << finding.name;
    EXPECT_EQ(finding.remedy.empty(), finding.verdict == Verdict::kOk) << finding.name;
  }
}

TEST(ThisMachine, SeesPortsProgramsAndSpace) {
  const auto machine = this_machine();
  const auto listener = net::make_listener("127.0.0.1", 0);
  ASSERT_TRUE(listener);
  const uint16_t port = *net::local_port(*listener);
  EXPECT_FALSE(machine->try_listen("127.0.0.1", port));
  EXPECT_TRUE(machine->try_listen("127.0.0.1", 0));
  EXPECT_NE(machine->find_program("sh"), "");
  EXPECT_EQ(machine->find_program("no-such-program"), "");
  EXPECT_TRUE(machine->finds_host("localhost"));
  EXPECT_FALSE(machine->finds_host("two words"));
  EXPECT_TRUE(machine->has_python_module("json"));
  EXPECT_FALSE(machine->has_python_module("no_such_module"));
  EXPECT_TRUE(std::filesystem::exists(machine->program_dir() + "/doctor_test"));
  EXPECT_TRUE(machine->try_write_in("/tmp"));
  EXPECT_FALSE(machine->try_write_in("/proc"));
  ASSERT_TRUE(machine->space_of("/"));
  EXPECT_GT(machine->space_of("/")->total_bytes, 0u);
}

}  // namespace
}  // namespace alcove::doctor

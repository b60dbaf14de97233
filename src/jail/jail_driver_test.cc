// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/jail_driver.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <csignal>
#include <fstream>
#include <thread>

#include "jail/jail_record.h"
#include "jail/testing/jail_fixture.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

using sandbox::Machine;
using std::chrono::seconds;
using std::chrono::steady_clock;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using JailDriverTest = jail::testing::JailFixture;

JailRecord record_of(const Machine& machine) { return *parse_jail_record(machine.record()); }

bool ends(const Machine& machine) {
  return sys::wait_by_pidfd(machine.exit_fd(), steady_clock::now() + seconds(20));
}

TEST_F(JailDriverTest, AgentAnswersOnBothFamilies) {
  Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(driver_->isolation_class(), "jail");
  EXPECT_EQ(ask(*machine, "read /proc/sys/kernel/hostname", Machine::Family::kV4), "box\n");
  EXPECT_EQ(ask(*machine, "read /proc/sys/kernel/hostname", Machine::Family::kV6), "box\n");
}

TEST_F(JailDriverTest, PassesArgumentsAndPort) {
  sandbox::BootSpec spec = make_spec();
  spec.agent_args = {"one two", ""};
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(ask(*machine, "pid1\nread /proc/self/cmdline"),
            std::string("/run/alcove/agent\0one two\0\0", 27));
  EXPECT_EQ(ask(*machine, "pid1\nread /proc/self/environ"),
            std::string("PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\0", 66));
}

TEST_F(JailDriverTest, ConcurrentBootsDoNotDisturbEachOther) {
  constexpr int kThreads = 4;
  constexpr int kBootsEach = 6;
  std::vector<std::thread> threads;
  std::atomic<int> good = 0;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kBootsEach; ++i) {
        sandbox::BootSpec spec = make_spec();
        spec.hostname = spec.id.str();
        auto machine = driver_->boot(spec);
        if (!machine) {
          ADD_FAILURE() << machine.error().message();
          return;
        }
        if (ask(**machine, "read /proc/sys/kernel/hostname") == spec.hostname + "\n") ++good;
        (*machine)->kill();
        EXPECT_TRUE((*machine)->destroy());
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, kThreads * kBootsEach);
  EXPECT_EQ(sandbox_cgroup_count(), 0u);
}

TEST_F(JailDriverTest, SandboxesHaveDisjointIdsOnTheHost) {
  Machine* one = boot();
  Machine* two = boot();
  ASSERT_TRUE(one && two);
  for (Machine* machine : {one, two}) {
    const JailRecord record = record_of(*machine);
    const auto status = sys::read_file(cat("/proc/", record.pid, "/status"));
    ASSERT_TRUE(status);
    const uint32_t id = record.range.first_id();
    EXPECT_THAT(*status, HasSubstr(cat("Uid:\t", id, "\t", id, "\t", id, "\t", id, "\n")));
    EXPECT_THAT(*status, HasSubstr(cat("Gid:\t", id, "\t", id, "\t", id, "\t", id, "\n")));
  }
  EXPECT_NE(record_of(*one).range, record_of(*two).range);
  EXPECT_EQ(record_of(*one).range.block, record_of(*two).range.block);
}

TEST_F(JailDriverTest, LayersKeepTheirOwnersAndTheTopmostWins) {
  std::filesystem::create_directories(data_dir_ + "/top");
  std::ofstream(data_dir_ + "/layer/file") << "below";
  std::ofstream(data_dir_ + "/layer/only-below") << "x";
  std::ofstream(data_dir_ + "/top/file") << "above";
  ASSERT_EQ(::chown((data_dir_ + "/top/file").c_str(), 1000, 1001), 0);
  sandbox::BootSpec spec = make_spec();
  spec.layers = {data_dir_ + "/top", data_dir_ + "/layer"};
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(ask(*machine, "read /file\nstat /file\nstat /only-below\nstat /"),
            "above100644 1000 1001\n100644 0 0\n40755 0 0\n");
  // A change lands in the upper directory with the host id of the inner one.
  EXPECT_EQ(ask(*machine, "write /file new\nsys 94 \"/file 7 8\nsys 188 \"/file \"user.k \"v 1 0"),
            "ok\n0 0\n0 0\n");
  struct stat changed{};
  ASSERT_EQ(::stat((spec.upper_dir + "/file").c_str(), &changed), 0);
  EXPECT_EQ(changed.st_uid, record_of(*machine).range.first_id() + 7);
  EXPECT_EQ(changed.st_gid, record_of(*machine).range.first_id() + 8);
  EXPECT_EQ(*sys::read_file(data_dir_ + "/top/file"), "above");
}

TEST_F(JailDriverTest, MemoryLimitKillsWhatGoesBeyondAndNothingElse) {
  Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(ask(*machine, "eat 20"), "ate\n");
  EXPECT_EQ(ask(*machine, "eat 200"), "signal 9\n");
  EXPECT_EQ(ask(*machine, "read /proc/sys/kernel/hostname"), "box\n");
}

TEST_F(JailDriverTest, ProcessLimitHolds) {
  Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  // Two of the 50 are pid 1 and the one that forks.
  EXPECT_EQ(ask(*machine, "forks 100"), cat("48 ", EAGAIN, "\n"));
}

TEST_F(JailDriverTest, UsageIsTheSandboxesOwn) {
  Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  ask(*machine, "eat 30");
  const auto usage = machine->usage();
  ASSERT_TRUE(usage) << usage.error().message();
  EXPECT_EQ(usage->pids, 1u);
  EXPECT_GT(usage->cpu_microseconds, 0u);
  EXPECT_GT(usage->memory_bytes, 0u);
  EXPECT_LT(usage->memory_bytes, 64u << 20);
}

TEST_F(JailDriverTest, KillAndDestroyLeaveNothing) {
  const sandbox::BootSpec spec = make_spec();
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  // A fork of pid 1, which stays.
  EXPECT_THAT(ask(*machine, "pid1\nsys 57"), HasSubstr(" 0\n"));
  EXPECT_EQ(machine->usage()->pids, 2u);
  const JailRecord record = record_of(*machine);
  EXPECT_GT(sandbox_cgroup_count(), 0u);
  machine->kill();
  EXPECT_TRUE(ends(*machine));
  EXPECT_TRUE(machine->destroy());
  EXPECT_TRUE(machine->destroy());
  machine->kill();
  EXPECT_EQ(sandbox_cgroup_count(), 0u);
  EXPECT_FALSE(std::filesystem::exists(cat("/proc/", record.pid, "/ns/net")));
  EXPECT_THAT(*sys::read_file("/proc/self/mountinfo"), Not(HasSubstr(spec.id.str())));
  std::error_code error;
  std::filesystem::remove_all(std::filesystem::path(spec.upper_dir).parent_path(), error);
  EXPECT_FALSE(error) << error.message();
}

TEST_F(JailDriverTest, AProcessThatWaitsForItsOwnFileSystemEnds) {
  Machine* machine = boot();
  Machine* other = boot();
  ASSERT_TRUE(machine && other);
  ASSERT_EQ(ask(*machine, "deadlock"), "0\n");
  ASSERT_EQ(ask(*other, "deadlock"), "0\n");
  machine->kill();
  other->kill();
  const auto ends_by = [](Machine& each, std::chrono::milliseconds wait) {
    return sys::wait_by_pidfd(each.exit_fd(), std::chrono::steady_clock::now() + wait);
  };
  EXPECT_FALSE(ends_by(*machine, std::chrono::milliseconds(300)));
  machine->free_stuck();
  EXPECT_TRUE(ends(*machine));
  EXPECT_FALSE(ends_by(*other, std::chrono::milliseconds(100)));
  EXPECT_TRUE(other->destroy());
  EXPECT_TRUE(machine->destroy());
  EXPECT_EQ(sandbox_cgroup_count(), 0u);
}

TEST_F(JailDriverTest, ASweepEndsProcessesThatWaitForTheirOwnFileSystem) {
  for (int i = 0; i < 3; ++i) {
    Machine* machine = boot();
    ASSERT_NE(machine, nullptr);
    ASSERT_EQ(ask(*machine, "deadlock"), "0\n");
  }
  machines_.clear();
  driver_.reset();
  start_driver();
  const auto swept = driver_->sweep({});
  EXPECT_TRUE(swept) << swept.error().message();
  EXPECT_EQ(sandbox_cgroup_count(), 0u);
}

TEST_F(JailDriverTest, ExitOfPidOneIsSeen) {
  Machine* machine = boot();
  ASSERT_NE(machine, nullptr);
  ask(*machine, "pid1\nsys 60 0");
  EXPECT_TRUE(ends(*machine));
  EXPECT_TRUE(machine->destroy());
}

TEST_F(JailDriverTest, FailedBootNamesTheStepAndLeavesNothing) {
  std::ofstream(data_dir_ + "/not-a-program") << "text";
  ASSERT_EQ(::chmod((data_dir_ + "/not-a-program").c_str(), 0755), 0);
  auto expect_failure = [&](const char* words, auto change) {
    sandbox::BootSpec spec = make_spec();
    change(spec);
    const auto machine = driver_->boot(spec);
    ASSERT_FALSE(machine) << words;
    EXPECT_THAT(machine.error().message(), HasSubstr(words));
    EXPECT_EQ(sandbox_cgroup_count(), 0u);
  };
  expect_failure("find the agent", [&](auto& spec) { spec.agent_path = data_dir_ + "/nothing"; });
  expect_failure("run agent", [&](auto& spec) { spec.agent_path = data_dir_ + "/not-a-program"; });
  expect_failure("attach layers", [&](auto& spec) { spec.layers = {data_dir_ + "/nothing"}; });
  expect_failure("upper directory", [&](auto& spec) { spec.upper_dir = data_dir_ + "/nothing"; });
  expect_failure("data directory", [](auto& spec) { spec.upper_dir = "/elsewhere"; });
  expect_failure("layers", [](auto& spec) { spec.layers = {}; });
  expect_failure("id", [](auto& spec) { spec.id = SandboxId("../escape"); });
  EXPECT_NE(boot(), nullptr);
}

TEST_F(JailDriverTest, SandboxOutlivesTheDriverAndIsAdopted) {
  const sandbox::BootSpec spec = make_spec();
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  EXPECT_EQ(ask(*machine, "write /tmp/mark here"), "ok\n");
  const std::string record = machine->record();
  machines_.clear();
  driver_.reset();

  start_driver();
  auto adopted = driver_->adopt(spec.id, record);
  ASSERT_TRUE(adopted) << adopted.error().message();
  machines_.push_back(std::move(*adopted));
  machine = machines_.back().get();
  EXPECT_EQ(ask(*machine, "read /tmp/mark"), "here");
  EXPECT_TRUE(machine->usage());
  EXPECT_EQ(machine->record(), record);

  // Its template's namespace is taken over, and its ids are not given to another.
  Machine* other = boot();
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(record_of(*other).range.block, record_of(*machine).range.block);
  EXPECT_NE(record_of(*other).range.index, record_of(*machine).range.index);

  machine->kill();
  EXPECT_TRUE(machine->destroy());
  const auto gone = driver_->adopt(spec.id, record);
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code(), Code::kNotFound);
}

TEST_F(JailDriverTest, AdoptTrustsNoRecordThatDoesNotFit) {
  const sandbox::BootSpec spec = make_spec();
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  const JailRecord good = record_of(*machine);
  machines_.clear();
  driver_.reset();
  start_driver();
  auto refused = [&](const SandboxId& id, const JailRecord& record) {
    const auto machine_or = driver_->adopt(id, to_json(record));
    return !machine_or && machine_or.error().code() == Code::kNotFound;
  };
  JailRecord other_time = good;
  other_time.start_time += 1;
  EXPECT_TRUE(refused(spec.id, other_time));
  JailRecord this_process = good;
  this_process.pid = ::getpid();
  this_process.start_time = *sys::process_start_time(::getpid());
  EXPECT_TRUE(refused(spec.id, this_process));
  EXPECT_TRUE(refused(make_sandbox_id(), good));
  EXPECT_FALSE(driver_->adopt(spec.id, "{}"));
  EXPECT_FALSE(driver_->adopt(spec.id, "nonsense"));
  EXPECT_TRUE(driver_->adopt(spec.id, to_json(good)));
}

TEST_F(JailDriverTest, AShortageOfDescriptorsIsNotTheEndOfASandbox) {
  const sandbox::BootSpec spec = make_spec();
  Machine* machine = boot(spec);
  ASSERT_NE(machine, nullptr);
  const std::string record = machine->record();
  machines_.clear();
  driver_.reset();
  start_driver();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const UniqueFd lowest(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  // One more with each try, so that each step is the first that fails.
  int failures = 0;
  for (;; ++failures) {
    ASSERT_LT(failures, 100);
    rlimit few = before;
    few.rlim_cur = static_cast<rlim_t>(lowest.get() + 1 + failures);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
    auto adopted = driver_->adopt(spec.id, record);
    ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
    if (adopted) {
      machines_.push_back(std::move(*adopted));
      break;
    }
    EXPECT_NE(adopted.error().code(), Code::kNotFound) << adopted.error().message();
  }
  EXPECT_GE(failures, 4);
  EXPECT_EQ(ask(*machines_.back(), "read /proc/sys/kernel/hostname"), "box\n");
}

TEST_F(JailDriverTest, SweepRemovesWhatIsNotKept) {
  const sandbox::BootSpec keep = make_spec();
  const sandbox::BootSpec drop = make_spec();
  Machine* kept = boot(keep);
  Machine* dropped = boot(drop);
  ASSERT_TRUE(kept && dropped);
  ASSERT_TRUE(driver_->sweep({keep.id}));
  EXPECT_TRUE(ends(*dropped));
  EXPECT_FALSE(driver_->adopt(drop.id, dropped->record()));
  EXPECT_EQ(ask(*kept, "read /proc/sys/kernel/hostname"), "box\n");
}

TEST_F(JailDriverTest, SandboxOutlivesTheLauncherWhichIsStartedAgain) {
  Machine* before = boot();
  ASSERT_NE(before, nullptr);
  const pid_t launcher = find_launcher();
  ASSERT_GT(launcher, 0);
  ASSERT_EQ(::kill(launcher, SIGKILL), 0);
  Machine* after = boot();
  ASSERT_NE(after, nullptr);
  EXPECT_NE(find_launcher(), launcher);
  EXPECT_EQ(ask(*before, "read /proc/sys/kernel/hostname"), "box\n");
  EXPECT_EQ(ask(*after, "read /proc/sys/kernel/hostname"), "box\n");
}

TEST_F(JailDriverTest, LauncherThatCannotStartIsAnError) {
  JailDriver::Options bad = options();
  bad.launcher_path = "/nowhere/alcove-jail";
  EXPECT_FALSE(JailDriver::create(bad));
  bad = options();
  bad.data_dir = "/nowhere";
  EXPECT_FALSE(JailDriver::create(bad));
}

TEST_F(JailDriverTest, OverlayWithoutRoomForItsWorkDirectoryIsRefused) {
  // The mount below must not reach the machine's own mount table.
  ASSERT_EQ(::unshare(CLONE_NEWNS), 0);
  ASSERT_EQ(::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr), 0);
  const std::string full = data_dir_ + "/full";
  std::filesystem::create_directory(full);
  ASSERT_EQ(::mount("full", full.c_str(), "tmpfs", 0, "nr_inodes=3"), 0);
  std::filesystem::create_directory(full + "/upper");
  std::filesystem::create_directory(full + "/work");
  driver_.reset();
  start_driver();
  sandbox::BootSpec spec = make_spec();
  spec.upper_dir = full + "/upper";
  spec.work_dir = full + "/work";
  const auto machine = driver_->boot(spec);
  ASSERT_FALSE(machine);
  EXPECT_THAT(machine.error().message(), HasSubstr("writable"));
  EXPECT_EQ(machine.error().error_number(), EROFS);
  ASSERT_EQ(::umount2(full.c_str(), MNT_DETACH), 0);
}

}  // namespace
}  // namespace alcove::jail

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/strings.h"
#include "jail/jail_driver.h"
#include "sys/file_io.h"

namespace alcove::jail::testing {

// A data directory with one layer (an empty root but for what a test puts there) and the probe as
// agent, and a driver on it. Needs root; ends every sandbox when it goes.
class JailFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root";
    data_dir_ = ::testing::TempDir() + "alcove-jail-" + random_alphanumeric(8);
    prefix_ = "alcove-jailtest-" + random_alphanumeric(6);
    std::filesystem::create_directories(data_dir_ + "/layer/bin");
    std::filesystem::create_directories(data_dir_ + "/sandboxes");
    std::filesystem::permissions(data_dir_, std::filesystem::perms::owner_all);
    std::filesystem::copy_file(ALCOVE_PROBE_AGENT, data_dir_ + "/agent");
    start_driver();
  }

  void TearDown() override {
    if (data_dir_.empty()) return;
    machines_.clear();
    driver_.reset();
    start_driver();
    if (driver_) EXPECT_TRUE(driver_->sweep({}));
    driver_.reset();
    for (const std::string& dir : cgroup_dirs()) ::rmdir(dir.c_str());
    EXPECT_TRUE(cgroup_dirs().empty());
    std::error_code error;
    std::filesystem::remove_all(data_dir_, error);
    EXPECT_FALSE(error) << error.message();
  }

  JailDriver::Options options() const {
    return {.launcher_path = ALCOVE_JAIL_PROGRAM,
            .data_dir = data_dir_,
            .extra_dirs = {},
            .cgroup_prefix = prefix_,
            .pairs_per_key = pairs_per_key_,
            .relay = relay_};
  }

  void start_driver() {
    auto driver = JailDriver::create(options());
    ASSERT_TRUE(driver) << driver.error().message();
    driver_ = std::move(*driver);
  }

  sandbox::BootSpec make_spec() {
    sandbox::BootSpec spec;
    spec.id = make_sandbox_id();
    spec.pool_key = "test";
    spec.layers = {data_dir_ + "/layer"};
    const std::string own = data_dir_ + "/sandboxes/" + spec.id.str();
    std::filesystem::create_directories(own + "/upper");
    std::filesystem::create_directories(own + "/work");
    spec.upper_dir = own + "/upper";
    spec.work_dir = own + "/work";
    spec.hostname = "box";
    spec.agent_path = data_dir_ + "/agent";
    spec.limits.memory_bytes = 64ull << 20;
    spec.limits.pids = 50;
    spec.limits.vcpu_count = 1;
    return spec;
  }

  sandbox::Machine* boot(const sandbox::BootSpec& spec) {
    auto machine = driver_->boot(spec);
    if (!machine) {
      ADD_FAILURE() << machine.error().message();
      return nullptr;
    }
    machines_.push_back(std::move(*machine));
    return machines_.back().get();
  }
  sandbox::Machine* boot() { return boot(make_spec()); }

  // What the probe answers to these commands.
  static std::string ask(sandbox::Machine& machine, const std::string& commands,
                         sandbox::Machine::Family family = sandbox::Machine::Family::kV4) {
    auto fd = machine.connect(49983, family);
    if (!fd) return "connect: " + fd.error().message();
    pollfd waiting{fd->get(), POLLOUT, 0};
    ::poll(&waiting, 1, 10'000);
    const std::string text = commands + "\n\n";
    if (::send(fd->get(), text.data(), text.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(text.size())) {
      return "send: " + std::to_string(errno);
    }
    std::string answer;
    char buffer[4096];
    for (;;) {
      waiting.events = POLLIN;
      if (::poll(&waiting, 1, 30'000) != 1) return answer + "(no answer)";
      const ssize_t got = ::recv(fd->get(), buffer, sizeof buffer, 0);
      if (got <= 0) return answer;
      answer.append(buffer, got);
    }
  }

  std::vector<std::string> cgroup_dirs() const {
    std::vector<std::string> found;
    const auto mountinfo = sys::read_file("/proc/self/mountinfo");
    if (!mountinfo) return found;
    for (const std::string_view line : split(*mountinfo, '\n')) {
      const auto fields = split(line, ' ');
      if (fields.size() < 5 || line.find(" - cgroup") == std::string_view::npos) continue;
      const std::string dir = cat(fields[4], "/", prefix_);
      if (std::filesystem::exists(dir)) found.push_back(dir);
    }
    return found;
  }
  // The launcher that this process has started; -1 if there is none.
  static pid_t find_launcher() {
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
      const auto children = sys::read_file(task.path().string() + "/children");
      if (!children) continue;
      for (const std::string_view word : split(trim(*children), ' ')) {
        const auto name = sys::read_file(cat("/proc/", word, "/comm"));
        if (name && *name == "alcove-jail\n") return parse_number<pid_t>(word).value_or(-1);
      }
    }
    return -1;
  }

  size_t sandbox_cgroup_count() const {
    size_t count = 0;
    for (const std::string& dir : cgroup_dirs()) {
      for (const auto& entry : std::filesystem::directory_iterator(dir)) {
        count += entry.is_directory() ? 1 : 0;
      }
    }
    return count;
  }

  std::string data_dir_;
  std::string prefix_;
  uint32_t pairs_per_key_ = 2;
  std::shared_ptr<relay::RelayClient> relay_;  // none unless a test brings one
  std::unique_ptr<JailDriver> driver_;
  std::vector<std::unique_ptr<sandbox::Machine>> machines_;
};

}  // namespace alcove::jail::testing

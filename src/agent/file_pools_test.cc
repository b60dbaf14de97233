// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/file_pools.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "agent/testing/agent_fixture.h"
#include "agent/testing/hung_mount.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

using testing::read_text;
using testing::write_text;
using Walk = MountPoints::Walk;

TEST(FilePools, WhatStaysOnTheRootMountCannotHang) {
  const testing::TempDir dir;
  FilePools pools;
  EXPECT_FALSE(pools.at("/").may_hang);
  EXPECT_FALSE(pools.at(dir.path()).may_hang);
  EXPECT_FALSE(pools.at(dir / "not/there/yet").may_hang);
  EXPECT_FALSE(pools.at(dir / std::string(300, 'x')).may_hang);
  EXPECT_TRUE(pools.at("/proc/self/status").may_hang);
  EXPECT_TRUE(pools.at(dir / "not/there/../../../proc").may_hang);
  ASSERT_EQ(::symlink("/proc", (dir / "link").c_str()), 0);
  EXPECT_TRUE(pools.at(dir / "link/1/status").may_hang);
}

TEST(FilePools, WhatIsMountedBelowMayHang) {
  const testing::TempDir dir;
  FilePools pools;
  EXPECT_FALSE(pools.below(dir.path(), Walk::kTree).may_hang);
  EXPECT_FALSE(pools.below(dir / "not there", Walk::kTree).may_hang);
  EXPECT_TRUE(pools.below("/", Walk::kTree).may_hang);
  EXPECT_TRUE(pools.below("/proc", Walk::kEntries).may_hang);
  ASSERT_EQ(::symlink("/", (dir / "link").c_str()), 0);
  EXPECT_TRUE(pools.below(dir / "link", Walk::kTree).may_hang);
}

class HungMountTest : public testing::AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    ASSERT_EQ(::mkdir((dir_ / "files").c_str(), 0755), 0);
    write_text(dir_ / "files/a", "text");
  }
  void TearDown() override { hung_.end(); }

  void pause() { run(net::sleep_for(std::chrono::milliseconds(300))); }
  // A call whose answer nobody reads.
  std::unique_ptr<http::ClientConnection> ask(const std::string& method, const std::string& target,
                                              const http::Headers& headers = {},
                                              const std::string& body = "") {
    auto connection = connect();
    EXPECT_TRUE(run(connection->write_head(head(method, target, headers), body.size(), body)));
    return connection;
  }
  http::Response stat(const std::string& path, http::Headers headers = {}) {
    return rpc("/filesystem.Filesystem/Stat", cat(R"({"path":")", path, R"("})"),
               std::move(headers));
  }
  void expect_the_root_mount_works() {
    EXPECT_EQ(stat(dir_ / "files/a").status, 200);
    EXPECT_EQ(call("GET", "/files?path=" + dir_ / "files/a").body, "text");
    EXPECT_EQ(call("POST", "/files?username=root&path=" + dir_ / "files/b",
                   {{"Content-Type", "application/octet-stream"}}, "new")
                  .status,
              200);
    EXPECT_EQ(read_text(dir_ / "files/b"), "new");
    const http::Response listed =
        rpc("/filesystem.Filesystem/ListDir", cat(R"({"path":")", dir_ / "files", R"("})"));
    EXPECT_NE(listed.body.find("/files/b\""), std::string::npos) << listed.body;
    EXPECT_EQ(rpc("/filesystem.Filesystem/CreateWatcher",
                  cat(R"({"path":")", dir_ / "files", R"(","recursive":true})"))
                  .status,
              200);
    EXPECT_EQ(
        rpc("/filesystem.Filesystem/Remove", cat(R"({"path":")", dir_ / "files/b", R"("})")).status,
        200);
    EXPECT_EQ(run_shell("echo fine").output, "fine\n");
  }

  testing::HungMount hung_{dir_ / "hung"};
};

TEST_F(HungMountTest, TakesNoThreadOfTheRootMount) {
  std::vector<std::unique_ptr<http::ClientConnection>> calls;
  // Twice: the last threads come when the others were seen to hang.
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 200; ++i) {
      calls.push_back(ask("GET", cat("/files?path=", dir_ / "hung/", i)));
      calls.push_back(ask("POST", cat("/files?path=", dir_ / "hung/", i),
                          {{"Content-Type", "application/octet-stream"}}, "x"));
    }
    pause();
  }
  expect_the_root_mount_works();
  // No room is left for more of them, which is said at once.
  EXPECT_EQ(call("GET", "/files?path=" + dir_ / "hung/more").status, 503);
  EXPECT_EQ(stat(dir_ / "hung/more").status, 429);
}

TEST_F(HungMountTest, NoLinkLeadsAThreadThere) {
  std::vector<std::unique_ptr<http::ClientConnection>> calls;
  ASSERT_EQ(::mkdir((dir_ / "links").c_str(), 0755), 0);
  ASSERT_EQ(::symlink((dir_ / "hung/x").c_str(), (dir_ / "links/x").c_str()), 0);
  const http::Headers json = {{"Content-Type", "application/json"}};
  for (int i = 0; i < 60; ++i) {
    calls.push_back(ask("POST", "/filesystem.Filesystem/ListDir", json,
                        cat(R"({"path":")", dir_ / "links", R"("})")));
  }
  pause();
  expect_the_root_mount_works();
}

TEST_F(HungMountTest, ACallEndsWithItsDeadline) {
  const http::Headers soon = {{"Connect-Timeout-Ms", "300"}};
  EXPECT_EQ(stat(dir_ / "hung/a", soon).status, 504);
  EXPECT_EQ(rpc("/filesystem.Filesystem/CreateWatcher",
                cat(R"({"path":")", dir_ / "hung", R"(","allowNetworkMounts":true})"), soon)
                .status,
            504);
}

TEST_F(HungMountTest, ACommandThatCannotStartEndsWithItsDeadline) {
  const std::string message =
      cat(R"({"process":{"cmd":"/bin/true","cwd":")", dir_ / "hung/a", R"("}})");
  for (int i = 0; i < 3; ++i) {
    auto stream = open_stream("/process.Process/Start", message, {{"Connect-Timeout-Ms", "300"}});
    const auto outcome = finish(stream);
    ASSERT_TRUE(outcome.end_of_stream);
    EXPECT_NE(outcome.end_of_stream->find("deadline_exceeded"), std::string::npos);
    EXPECT_EQ(run_shell("echo fine").output, "fine\n");
  }
}

TEST_F(HungMountTest, AClientThatLeavesIsNotKept) {
  const auto open_files = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"),
                         std::filesystem::directory_iterator());
  };
  const auto before = open_files();
  {
    std::vector<std::unique_ptr<http::ClientConnection>> calls;
    for (int i = 0; i < 20; ++i)
      calls.push_back(ask("GET", cat("/files?path=", dir_ / "hung/", i)));
    pause();
  }
  for (int i = 0; i < 100 && open_files() > before + 2; ++i) pause();
  EXPECT_LE(open_files(), before + 2);
}

}  // namespace
}  // namespace alcove::agent

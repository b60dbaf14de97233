// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/download_tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "base/strings.h"
#include "http/server.h"
#include "net/listener.h"
#include "net/testing/loop_runner.h"

namespace alcove::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

// A sandbox that answers whatever a test wants it to: by "<method or path>" and the path asked for.
class HostileSandbox : public ::testing::Test {
 protected:
  HostileSandbox() : server_(loop_, [this](http::Exchange& exchange) { return answer(exchange); }) {
    auto listener = net::make_listener("127.0.0.1", 0);
    const uint16_t port = *net::local_port(*listener);
    EXPECT_TRUE(server_.serve(std::move(*listener)));
    url_ = cat("http://127.0.0.1:", port);
    std::string name = "/tmp/alcove-cli-test-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    target_ = dir_ + "/target";
    fs::create_directory(target_);
  }
  ~HostileSandbox() override { fs::remove_all(dir_); }

  static std::string entry(const std::string& name, const std::string& type,
                           const std::string& more = "") {
    return cat(R"({"name":")", name, R"(","type":"FILE_TYPE_)", type, R"(","mode":420)", more, "}");
  }
  void set_listing(const std::string& path, const std::string& entries) {
    answers_[cat("ListDir {\"path\":\"", path, "\",\"depth\":1}")] =
        cat("{\"entries\":[", entries, "]}");
  }
  void set_root_entry(const std::string& text) {
    answers_[R"(Stat {"path":"/d"})"] = cat("{\"entry\":", text, "}");
  }

  // Copies /d into the target.
  Result<void> copy() {
    auto server = Server::open({.api_url = url_, .sandbox_url = url_, .api_key = "e2b_x"});
    return net::testing::run(loop_, copy_with(*server));
  }
  Task<Result<void>> copy_with(Server& server) {
    ALCOVE_CO_TRY_ASSIGN(AgentClient agent, co_await AgentClient::open(server, "i0", ""));
    RemoteFiles files(agent);
    Progress progress;
    DownloadTree tree(files, progress);
    auto copied = co_await tree.copy("/d", target_);
    left_out_ = tree.left_out();
    co_return copied;
  }

  Task<void> answer(http::Exchange& exchange) {
    const std::string_view path = exchange.request().path();
    std::string key(exchange.request().target);
    if (exchange.request().method == "POST") {
      auto body = co_await exchange.body().read_all(10000);
      key = cat(path.substr(path.rfind('/') + 1), " ", *body);
    }
    http::Response response;
    const auto found = answers_.find(key);
    response.status = found == answers_.end() ? 404 : 200;
    response.body = found == answers_.end()
                        ? cat(R"({"code":"not_found","message":")", "no ", R"("})")
                        : found->second;
    (void)co_await exchange.respond(std::move(response));
  }

  std::string read(const std::string& name) {
    std::ifstream file(target_ + "/" + name);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  boost::asio::io_context loop_{1};
  http::Server server_;
  std::string url_;
  std::string dir_;
  std::string target_;
  uint64_t left_out_ = 0;
  std::map<std::string, std::string> answers_{
      {"/sandboxes/i0", R"({"sandboxID":"i0","envdAccessToken":"t"})"},
      {"/files?path=%2Fd%2Fa", "content"}};
};

TEST_F(HostileSandbox, AnOrdinaryTreeIsCopied) {
  set_root_entry(entry("d", "DIRECTORY"));
  set_listing("/d", entry("a", "FILE") + "," + entry("sub", "DIRECTORY"));
  set_listing("/d/sub", "");
  ASSERT_TRUE(copy());
  EXPECT_EQ(read("d/a"), "content");
  EXPECT_TRUE(fs::is_directory(target_ + "/d/sub"));
}

TEST_F(HostileSandbox, NamesThatLeaveTheTargetEndTheCopy) {
  for (const char* name : {"..", "../evil", "/evil", "x/evil", "", "."}) {
    set_root_entry(entry("d", "DIRECTORY"));
    set_listing("/d", entry(name, "FILE"));
    const auto copied = copy();
    ASSERT_FALSE(copied) << name;
    EXPECT_EQ(copied.error().code(), Code::kPermissionDenied) << name;
    EXPECT_THAT(copied.error().message(), HasSubstr("would leave")) << name;
  }
  EXPECT_FALSE(fs::exists(dir_ + "/evil"));
  EXPECT_FALSE(fs::exists("/evil"));
}

TEST_F(HostileSandbox, NothingIsWrittenThroughALink) {
  set_root_entry(entry("d", "DIRECTORY"));
  std::ofstream(dir_ + "/precious") << "mine";
  fs::create_directory(target_ + "/d");
  fs::create_symlink(dir_ + "/precious", target_ + "/d/a");
  set_listing("/d", entry("a", "FILE"));
  EXPECT_FALSE(copy());
  fs::remove(target_ + "/d/a");

  fs::create_directory(dir_ + "/outside");
  fs::create_symlink(dir_ + "/outside", target_ + "/d/sub");
  set_listing("/d", entry("sub", "DIRECTORY"));
  set_listing("/d/sub", entry("a", "FILE"));
  answers_["/files?path=%2Fd%2Fsub%2Fa"] = "content";
  EXPECT_FALSE(copy());
  EXPECT_TRUE(fs::is_empty(dir_ + "/outside"));
  std::ifstream precious(dir_ + "/precious");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(precious), {}), "mine");
}

TEST_F(HostileSandbox, AFifoInTheWayDoesNotHoldItUp) {
  set_root_entry(entry("d", "DIRECTORY"));
  fs::create_directory(target_ + "/d");
  ASSERT_EQ(::mkfifo((target_ + "/d/a").c_str(), 0600), 0);
  set_listing("/d", entry("a", "FILE"));
  EXPECT_FALSE(copy());
}

TEST_F(HostileSandbox, DirectoriesWithoutEndAreGivenUp) {
  set_root_entry(entry("d", "DIRECTORY"));
  std::string path = "/d";
  for (int i = 0; i < 300; ++i) {
    set_listing(path, entry("d", "DIRECTORY"));
    path += "/d";
  }
  const auto copied = copy();
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message(), HasSubstr("do not end"));
}

TEST_F(HostileSandbox, LinksToDirectoriesAndSpecialFilesAreLeftOut) {
  set_root_entry(entry("d", "DIRECTORY"));
  set_listing("/d", entry("loop", "DIRECTORY", R"(,"isSymlink":true)") + "," +
                        entry("dev", "UNSPECIFIED") + "," +
                        entry("a", "FILE", R"(,"isSymlink":true)"));
  ASSERT_TRUE(copy());
  EXPECT_EQ(left_out_, 2u);
  EXPECT_EQ(read("d/a"), "content");
  EXPECT_FALSE(fs::is_symlink(target_ + "/d/a"));
}

TEST_F(HostileSandbox, PermissionsAreOnlyThose) {
  set_root_entry(R"({"name":"d","type":"FILE_TYPE_FILE","mode":4095})");
  answers_["/files?path=%2Fd"] = "x";
  ASSERT_TRUE(copy());
  struct stat info{};
  ASSERT_EQ(::stat((target_ + "/d").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07000, 0u);
  EXPECT_EQ(info.st_mode & 0700, 0700u);
}

TEST_F(HostileSandbox, WhatIsMissingIsSaid) {
  const auto copied = copy();
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().message(), "the sandbox has no /d");
}

}  // namespace
}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/compose.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "agent/testing/agent_fixture.h"

namespace alcove::agent {
namespace {

using testing::AgentTest;
using testing::read_text;
using testing::write_text;

class ComposeTest : public AgentTest {
 protected:
  void SetUp() override {
    AgentTest::SetUp();
    write_text(dir_ / "a", "first ");
    write_text(dir_ / "b", std::string(3'000'000, 'b'));
    write_text(dir_ / "c", "");
  }

  http::Response compose(const std::vector<std::string>& sources, const std::string& destination,
                         std::string_view more = R"(,"username":"root")") {
    std::string list;
    for (const std::string& source : sources)
      list += cat(list.empty() ? "" : ",", '"', source, '"');
    return rpc("/files/compose", cat(R"({"source_paths":[)", list, R"(],"destination":")",
                                     destination, '"', more, '}'));
  }

  // What lies in the directory, without the agent's own folder.
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) {
      if (entry.path().filename() != "identity") found.push_back(entry.path().filename());
    }
    std::sort(found.begin(), found.end());
    return found;
  }
};

using Names = std::vector<std::string>;

TEST_F(ComposeTest, ConcatenatesInOrderAndDeletesTheSources) {
  write_text(dir_ / "out", "old content");
  const auto response = compose({dir_ / "a", dir_ / "b", dir_ / "c", dir_ / "a"}, dir_ / "out");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.headers.get("Content-Type"), "application/json");
  EXPECT_EQ(response.body, cat(R"({"path":")", dir_ / "out", R"(","name":"out","type":"file"})"));
  EXPECT_EQ(read_text(dir_ / "out"), "first " + std::string(3'000'000, 'b') + "first ");
  EXPECT_EQ(names(), Names{"out"});
}

TEST_F(ComposeTest, MakesParentsAndGivesAllToTheUser) {
  const auto response = compose({dir_ / "a"}, dir_ / "new/deep/out", R"(,"username":"nobody")");
  EXPECT_EQ(response.status, 200) << response.body;
  struct stat file{};
  struct stat parent{};
  ASSERT_EQ(::stat((dir_ / "new/deep/out").c_str(), &file), 0);
  ASSERT_EQ(::stat((dir_ / "new").c_str(), &parent), 0);
  EXPECT_EQ(file.st_uid, 65534u);
  EXPECT_EQ(parent.st_uid, 65534u);
  EXPECT_EQ(file.st_mode & 07777, 0644u);
}

TEST_F(ComposeTest, RelativePathsAreBelowTheHome) {
  const std::string name = std::filesystem::path(dir_.path()).filename();
  const auto response = compose({cat("../tmp/", name, "/a")}, cat("../tmp/", name, "/out"));
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(read_text(dir_ / "out"), "first ");
}

TEST_F(ComposeTest, RefusalsChangeNothing) {
  ASSERT_EQ(::symlink(dir_.path().c_str(), (dir_ / "link").c_str()), 0);
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  const Names before = names();
  EXPECT_EQ(rpc("/files/compose", "nonsense").status, 400);
  EXPECT_EQ(rpc("/files/compose", R"({"source_paths":"a","destination":"b"})").status, 400);
  EXPECT_EQ(compose({}, dir_ / "out").status, 400);
  EXPECT_EQ(compose({dir_ / "a"}, "").status, 400);
  EXPECT_EQ(compose({""}, dir_ / "out").status, 400);
  EXPECT_EQ(compose({dir_ / "b", dir_ / "a"}, dir_ / "a").status, 400);
  EXPECT_EQ(compose({dir_ / "./a"}, dir_ / "a").status, 400);
  EXPECT_EQ(compose({dir_ / "link/a"}, dir_ / "a").status, 400);
  EXPECT_EQ(compose({dir_.path()}, dir_ / "out").status, 400);
  EXPECT_EQ(compose({dir_ / "fifo"}, dir_ / "out").status, 400);
  EXPECT_EQ(compose({"/dev/null"}, dir_ / "out").status, 400);
  EXPECT_EQ(compose({dir_ / "a"}, dir_.path()).status, 400);
  EXPECT_EQ(compose({"~other/a"}, dir_ / "out").status, 400);
  const auto missing = compose({dir_ / "a", dir_ / "missing"}, dir_ / "out");
  EXPECT_EQ(missing.status, 404);
  EXPECT_NE(missing.body.find("missing' does not exist"), std::string::npos) << missing.body;
  EXPECT_EQ(compose({dir_ / "a"}, dir_ / "out", R"(,"username":"stranger")").status, 401);
  EXPECT_EQ(call("GET", "/files/compose").status, 405);
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read_text(dir_ / "a"), "first ");
}

TEST_F(ComposeTest, FailureRemovesTheTemporaryFile) {
  // Nothing is mapped at address 0, so this source fails when it is read.
  const Names before = names();
  const auto response = compose({dir_ / "a", "/proc/self/mem"}, dir_ / "out");
  EXPECT_EQ(response.status, 500) << response.body;
  EXPECT_EQ(names(), before);
}

TEST_F(ComposeTest, FilesThatDoNotSayTheirSizeAreRead) {
  const User root = {"root", 0, 0, "/root", {0}};
  const auto done = compose_files({dir_ / "a", "/proc/sys/kernel/ostype"}, dir_ / "out", root);
  // It cannot be deleted, which is said; the result is there.
  ASSERT_FALSE(done);
  EXPECT_EQ(compose_status(done.error()), 500);
  EXPECT_EQ(read_text(dir_ / "out"), "first Linux\n");
}

TEST_F(ComposeTest, StatusOfAFullDisk) {
  EXPECT_EQ(compose_status(Error::from_errno(ENOSPC, "copy")), 507);
  EXPECT_EQ(compose_status(Error::from_errno(ENOENT, "rename")), 500);
}

TEST_F(ComposeTest, NeedsTheTokenAndTakesNoSignature) {
  InitRequest request;
  request.access_token = "secret";
  init(request);
  EXPECT_EQ(compose({dir_ / "a"}, dir_ / "out").status, 401);
  const std::string body =
      cat(R"({"source_paths":[")", dir_ / "a", R"("],"destination":")", dir_ / "out", R"("})");
  EXPECT_EQ(rpc("/files/compose?signature=v1_x", body).status, 401);
  EXPECT_EQ(rpc("/files/compose", body, {{"X-Access-Token", "secret"}}).status, 200);
}

}  // namespace
}  // namespace alcove::agent

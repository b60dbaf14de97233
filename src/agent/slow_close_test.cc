// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
//
// A close() that waits for the program behind a file system holds up nobody else.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "agent/testing/agent_fixture.h"
#include "agent/testing/fuse_file.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

class SlowCloseTest : public testing::AgentTest {
 protected:
  // With a close under way, be it on the loop, which comes back then only after its end.
  void expect_others_are_served() {
    for (int i = 0; i < 500 && !fuse_.close_is_waiting(); ++i) {
      run(net::sleep_for(std::chrono::milliseconds(20)));
    }
    ASSERT_TRUE(fuse_.close_is_waiting());
    EXPECT_EQ(call("GET", "/health").status, 204);
    EXPECT_FALSE(fuse_.close_timed_out());
    fuse_.answer_closes();
  }

  // Longer than what is read or written at once.
  static constexpr uint64_t kSize = 3u << 20;
  testing::FuseFile fuse_{dir_ / "mount", kSize};
};

TEST_F(SlowCloseTest, AfterADownload) {
  EXPECT_EQ(call("GET", "/files?path=" + fuse_.path()).body.size(), kSize);
  expect_others_are_served();
}

TEST_F(SlowCloseTest, AfterADownloadThatWasRefused) {
  EXPECT_EQ(call("GET", "/files?path=" + fuse_.path(), {{"Accept-Encoding", "*;q=0"}}).status, 406);
  expect_others_are_served();
}

TEST_F(SlowCloseTest, AfterAnUploadThatWasCut) {
  auto connection = connect();
  ASSERT_TRUE(run(connection->write_head(
      head("POST", "/files?path=" + fuse_.path(), {{"Content-Type", "application/octet-stream"}}),
      2 * kSize, std::string(kSize, 'x'))));
  // The agent has taken some of it.
  run(net::sleep_for(std::chrono::milliseconds(200)));
  connection.reset();
  expect_others_are_served();
}

TEST_F(SlowCloseTest, AfterAFormThatWasCut) {
  auto connection = connect();
  const std::string body =
      "--bb\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\n" + std::string(kSize, 'x');
  ASSERT_TRUE(
      run(connection->write_head(head("POST", "/files?path=" + fuse_.path(),
                                      {{"Content-Type", "multipart/form-data; boundary=bb"}}),
                                 2 * kSize, body)));
  run(net::sleep_for(std::chrono::milliseconds(200)));
  connection.reset();
  expect_others_are_served();
}

}  // namespace
}  // namespace alcove::agent

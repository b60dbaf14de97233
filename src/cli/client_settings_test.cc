// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/client_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "cli/http_client.h"

namespace alcove::cli {
namespace {

using ::testing::HasSubstr;

class Settings : public ::testing::Test {
 protected:
  Settings() {
    std::string name = "/tmp/alcove-cli-test-XXXXXX";
    dir_ = ::mkdtemp(name.data());
    variables_["ALCOVE_DATA"] = dir_ + "/default";
  }
  ~Settings() override { std::filesystem::remove_all(dir_); }

  // A data directory whose env file says so.
  std::string data_dir(const std::string& name, const std::string& content) {
    std::filesystem::create_directories(dir_ + "/" + name);
    std::ofstream(dir_ + "/" + name + "/env") << content;
    return dir_ + "/" + name;
  }

  Result<ClientSettings> find(const ClientFlags& flags = {}) {
    return find_client_settings(flags, [this](const char* name) -> std::optional<std::string> {
      const auto found = variables_.find(name);
      if (found == variables_.end()) return {};
      return found->second;
    });
  }

  std::string dir_;
  std::map<std::string, std::string> variables_;
};

constexpr const char* kFile =
    "E2B_API_KEY=e2b_file\nE2B_API_URL=http://file:1\nE2B_SANDBOX_URL=http://file:2\n";

TEST_F(Settings, DefaultDataDirectoryIsTheLastPlaceToLook) {
  data_dir("default", kFile);
  const auto settings = find();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->api_url, "http://file:1");
  EXPECT_EQ(settings->sandbox_url, "http://file:2");
  EXPECT_EQ(settings->api_key, "e2b_file");
}

TEST_F(Settings, EnvironmentGoesBeforeTheDefaultDirectory) {
  data_dir("default", kFile);
  variables_["E2B_API_URL"] = "http://env:1";
  variables_["E2B_API_KEY"] = "e2b_env";
  const auto settings = find();
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->api_url, "http://env:1");
  // Not the file's: that is another server's.
  EXPECT_EQ(settings->sandbox_url, "http://env:1");
  EXPECT_EQ(settings->api_key, "e2b_env");
}

TEST_F(Settings, TheKeyOfAFileGoesToItsServerOnly) {
  const std::string dir = data_dir("default", kFile);
  const auto foreign = find({.url = "http://foreign:1", .api_key = {}, .data_dir = {}});
  ASSERT_FALSE(foreign);
  EXPECT_THAT(foreign.error().message(), HasSubstr("--api-key"));
  EXPECT_FALSE(find({.url = "http://foreign:1", .api_key = {}, .data_dir = dir}));
  const auto own = find({.url = "http://file:1", .api_key = {}, .data_dir = {}});
  ASSERT_TRUE(own);
  EXPECT_EQ(own->api_key, "e2b_file");
}

TEST_F(Settings, FlagsGoBeforeEverything) {
  variables_ = {{"E2B_API_URL", "http://env:1"}, {"E2B_API_KEY", "e2b_env"}};
  const std::string other = data_dir("other", kFile);
  const auto by_dir = find({.url = {}, .api_key = {}, .data_dir = other});
  ASSERT_TRUE(by_dir);
  EXPECT_EQ(by_dir->api_url, "http://file:1");
  EXPECT_EQ(by_dir->api_key, "e2b_file");
  const auto by_flags = find({.url = "http://flag:1", .api_key = "e2b_flag", .data_dir = other});
  ASSERT_TRUE(by_flags);
  EXPECT_EQ(by_flags->api_url, "http://flag:1");
  EXPECT_EQ(by_flags->sandbox_url, "http://flag:1");
  EXPECT_EQ(by_flags->api_key, "e2b_flag");
}

TEST_F(Settings, ErrorsNameTheRemedy) {
  const auto nothing = find();
  ASSERT_FALSE(nothing);
  EXPECT_THAT(nothing.error().message(), HasSubstr("--url or E2B_API_URL"));
  EXPECT_THAT(nothing.error().message(), HasSubstr(dir_ + "/default/env"));
  variables_["E2B_API_URL"] = "http://env:1";
  const auto no_key = find();
  ASSERT_FALSE(no_key);
  EXPECT_THAT(no_key.error().message(), HasSubstr("--api-key or E2B_API_KEY"));
  const auto no_dir = find({.url = {}, .api_key = {}, .data_dir = dir_ + "/nosuch"});
  ASSERT_FALSE(no_dir);
  EXPECT_THAT(no_dir.error().message(), HasSubstr("No such file"));
}

TEST(ParseEndpoint, TakesOriginsWithAndWithoutPathAndPort) {
  const auto plain = parse_endpoint("http://127.0.0.1:3000");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 3000);
  EXPECT_EQ(plain->authority, "127.0.0.1:3000");
  EXPECT_EQ(plain->prefix, "");
  const auto v6 = parse_endpoint("http://[::1]:80/api/");
  ASSERT_TRUE(v6);
  EXPECT_EQ(v6->host, "::1");
  EXPECT_EQ(v6->prefix, "/api");
  const auto bare = parse_endpoint("http://localhost");
  ASSERT_TRUE(bare);
  EXPECT_EQ(bare->port, 80);
  EXPECT_EQ(parse_endpoint("http://[::1]")->host, "::1");
}

TEST(ParseEndpoint, RefusesTheRest) {
  for (const char* url : {"", "localhost:3000", "http://", "http://x:0", "http://x:99999",
                          "http://x:abc", "http://u@x", "http://x/?q", "http://a b", "ftp://x"}) {
    EXPECT_FALSE(parse_endpoint(url)) << url;
  }
  EXPECT_THAT(parse_endpoint("https://x").error().message(), HasSubstr("TLS"));
}

}  // namespace
}  // namespace alcove::cli

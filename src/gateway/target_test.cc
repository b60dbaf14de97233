// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "gateway/target.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace alcove::gateway {
namespace {

TEST(Target, OriginFormHasNoAuthority) {
  const Target target = split_target("/a/b?x=1?y");
  EXPECT_EQ(target.authority, "");
  EXPECT_EQ(target.path(), "/a/b");
  EXPECT_EQ(target.query(), "x=1?y");
}

TEST(Target, AbsoluteFormIsTakenApart) {
  EXPECT_EQ(split_target("http://h:80/p?q").authority, "h:80");
  EXPECT_EQ(split_target("http://h:80/p?q").path_and_query, "/p?q");
  EXPECT_EQ(split_target("https://h?q").authority, "h");
  EXPECT_EQ(split_target("https://h?q").path_and_query, "?q");
  EXPECT_EQ(split_target("http://h").path_and_query, "");
  EXPECT_EQ(split_target("ftp://h/p").authority, "");
}

TEST(AgentControlPath, EverySpellingIsCaught) {
  for (const char* name :
       {"init", "freeze", "unfreeze", "fsfreeze", "fsthaw", "collapse", "upgrade", "journal"}) {
    const std::string plain = std::string("/") + name;
    EXPECT_TRUE(is_agent_control_path(plain)) << plain;
  }
  for (const char* path :
       {"//init",     "/init/",      "/init//",        "/./init",       "/init/.",
        "/x/../init", "/../init",    "/init/x/..",     "/%69nit",       "/%69%6e%69%74",
        "/%2569nit",  "/%252569nit", "/%2Finit",       "%2finit",       "init",
        "/.%2finit",  "/%2e/init",   "/x/%2e%2e/init", "/init%2f",      "/init%2F%2e",
        "/INIT",      "/Init",       "/init;x=1",      "/init%3bx",     "/init%00",
        "/init%20",   "/\\init",     "/%5cinit",       "/init\\",       "/init#x",
        "/init%23x",  "/init%3Fx=1", "/files/../init", "///.///init///"}) {
    EXPECT_TRUE(is_agent_control_path(path)) << path;
  }
}

TEST(AgentControlPath, OtherPathsPass) {
  for (const char* path : {"/",
                           "",
                           "/health",
                           "/metrics",
                           "/envs",
                           "/files",
                           "/files/compose",
                           "/process.Process/Start",
                           "/filesystem.Filesystem/Stat",
                           "/initx",
                           "/xinit",
                           "/init/x",
                           "/x/init",
                           "/init/../x",
                           "/%69nitx",
                           "/%zz",
                           "/%",
                           "/100%25",
                           "/upgrades",
                           "*"}) {
    EXPECT_FALSE(is_agent_control_path(path)) << path;
  }
}

TEST(AgentControlPath, EndlessEncodingIsRefused) {
  std::string path = "/%69nit";
  for (int i = 0; i < 20; ++i) path.replace(path.find('%'), 1, "%25");
  EXPECT_TRUE(is_agent_control_path(path));
}

}  // namespace
}  // namespace alcove::gateway

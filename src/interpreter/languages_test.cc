// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/languages.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

// A folder of programs that only exist.
class LanguagesTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(bin_); }
  void TearDown() override { std::filesystem::remove_all(bin_); }
  void install(const std::string& name) {
    std::ofstream(bin_ + "/" + name) << "#!";
    ASSERT_EQ(::chmod((bin_ + "/" + name).c_str(), 0755), 0);
  }
  const std::string bin_ = cat("/tmp/alcove-test-languages-", ::getpid());
};

TEST(NormalizeLanguage, AliasesCaseAndBlanks) {
  EXPECT_EQ(normalize_language(""), "python");
  EXPECT_EQ(normalize_language("  "), "python");
  EXPECT_EQ(normalize_language(" JS\n"), "javascript");
  EXPECT_EQ(normalize_language("Ts"), "typescript");
  EXPECT_EQ(normalize_language("Deno"), "deno");
}

TEST_F(LanguagesTest, CommandsAreThoseOfTheRunners) {
  for (const char* name : {"python3", "node", "sh", "java", "bash"}) install(name);
  using Words = std::vector<std::string>;
  EXPECT_EQ(**runner_command("python", "/run/r", bin_),
            (Words{bin_ + "/python3", "/run/r/python/main.py"}));
  EXPECT_EQ(**runner_command("java", "/run/r", bin_),
            (Words{bin_ + "/sh", "/run/r/java/start.sh"}));
  Words node = **runner_command("javascript", "/run/r", bin_);
  EXPECT_EQ(node.front(), bin_ + "/node");
  ASSERT_GT(node.size(), 2);
  EXPECT_EQ((Words{node.end() - 2, node.end()}), (Words{"/run/r/node/main.mjs", "javascript"}));
  node.back() = "typescript";
  EXPECT_EQ(**runner_command("typescript", "/run/r", bin_), node);
  EXPECT_EQ((**runner_command("bash", "/run/r", bin_)).back(), "/run/r/bash/main.py");
  EXPECT_FALSE(*runner_command("r", "/run/r", bin_)) << "it has no runner of ours";
}

TEST_F(LanguagesTest, WhatIsNotInstalledIsSaid) {
  install("sh");
  const auto java = runner_command("java", "/run/r", bin_);
  ASSERT_FALSE(java);
  EXPECT_EQ(java.error().message(), "java is not installed");
  install("java");
  EXPECT_TRUE(runner_command("java", "/run/r", "/nowhere::" + bin_));
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/root_mount.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

SpawnSpec started_by(std::string command, std::string directory = "/") {
  SpawnSpec spec;
  spec.command = std::move(command);
  spec.directory = std::move(directory);
  spec.environment = {"PATH=/nowhere:/usr/bin:/bin"};
  return spec;
}

// A link in a directory that the test may write to.
class RootMount : public ::testing::Test {
 protected:
  std::string link_to(const std::string& target) {
    const std::string path = dir_ / "link";
    EXPECT_EQ(::symlink(target.c_str(), path.c_str()), 0);
    return path;
  }

  testing::TempDir dir_;
};

TEST_F(RootMount, FindsWhatLiesThere) {
  EXPECT_TRUE(find_on_root_mount("/").valid());
  EXPECT_TRUE(find_on_root_mount("/usr/bin").valid());
}

TEST_F(RootMount, DoesNotCrossToOtherMounts) {
  EXPECT_FALSE(find_on_root_mount("/proc").valid());
  EXPECT_FALSE(find_on_root_mount("/proc/self/status").valid());
  EXPECT_FALSE(find_on_root_mount(link_to("/proc/self")).valid());
}

TEST_F(RootMount, FindsNothingWithoutAnAbsolutePath) {
  EXPECT_FALSE(find_on_root_mount("").valid());
  EXPECT_FALSE(find_on_root_mount("usr").valid());
  EXPECT_FALSE(find_on_root_mount("/no/such/file").valid());
}

TEST_F(RootMount, ProgramsThereAreStartedFromThere) {
  EXPECT_TRUE(starts_on_root_mount(started_by("/bin/sh")));
  EXPECT_TRUE(starts_on_root_mount(started_by("sh")));
}

TEST_F(RootMount, ScriptsAndWhatIsNoFileAreNot) {
  testing::write_text(dir_ / "script", "#!/bin/sh\n");
  ASSERT_EQ(::mkfifo((dir_ / "fifo").c_str(), 0600), 0);
  for (const std::string& command :
       {dir_ / "script", dir_ / "fifo", std::string("/usr"), std::string("/no/such/program"),
        std::string("./sh"), std::string()}) {
    EXPECT_FALSE(starts_on_root_mount(started_by(command))) << command;
  }
}

TEST_F(RootMount, NorAreProgramsWhoseLoaderLiesElsewhere) {
  std::string program = testing::read_text("/bin/sh");
  const size_t loader = program.find("/lib64/");
  ASSERT_NE(loader, std::string::npos);
  const std::string path = dir_ / "program";
  testing::write_text(path, program);
  EXPECT_TRUE(starts_on_root_mount(started_by(path)));
  program.replace(loader, 7, "/proc//");
  testing::write_text(path, program);
  EXPECT_FALSE(starts_on_root_mount(started_by(path)));
  testing::write_text(path, program.substr(0, loader + 3));
  EXPECT_FALSE(starts_on_root_mount(started_by(path)));
}

TEST_F(RootMount, ARelativeFolderOfPathIsNotPassedOver) {
  SpawnSpec spec = started_by("sh");
  spec.environment = {"PATH=/nowhere:bin:/usr/bin"};
  EXPECT_FALSE(starts_on_root_mount(spec));
}

TEST_F(RootMount, NorIsAnythingInADirectoryElsewhere) {
  EXPECT_FALSE(starts_on_root_mount(started_by("/bin/sh", "/proc")));
  EXPECT_FALSE(starts_on_root_mount(started_by("/bin/sh", "/no/such/directory")));
}

}  // namespace
}  // namespace alcove::agent

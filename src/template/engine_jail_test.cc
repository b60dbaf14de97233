// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>

#include "image/files.h"
#include "image/testing/temp_dir.h"
#include "jail/jail_driver.h"
#include "template/engine.h"

namespace alcove::templates {
namespace {

using ::testing::HasSubstr;

// Steps in real jails, on a root file system of one static program.
class EngineInJail : public ::testing::Test {
 protected:
  void SetUp() override {
    constexpr const char* kBusybox = "/bin/busybox";
    ASSERT_TRUE(std::filesystem::exists(kBusybox)) << "install the package busybox-static";
    for (const char* name : {"bin", "etc", "opt/dir", "tmp", "dev", "proc", "sys", "run"}) {
      ASSERT_TRUE(image::make_directories(dir_ / ("recipe/rootfs/" + std::string(name))));
    }
    std::filesystem::copy_file(kBusybox, dir_ / "recipe/rootfs/bin/busybox");
    for (const char* name : {"sh", "touch", "chown", "chmod", "rm", "mkdir", "test", "stat", "ls",
                             "id", "hostname", "cat", "ln", "sleep", "mknod", "setfattr"}) {
      ASSERT_EQ(::symlink("busybox", (dir_ / ("recipe/rootfs/bin/" + std::string(name))).c_str()),
                0);
    }
    image::write_text(dir_ / "recipe/rootfs/etc/removed", "x");
    image::write_text(dir_ / "recipe/rootfs/opt/dir/old", "x");

    jail::JailDriver::Options options;
    options.launcher_path = ALCOVE_JAIL_PROGRAM;
    options.data_dir = data_dir();
    options.cgroup_prefix = cgroup_prefix_;
    options.pairs_per_key = 1;
    auto driver = jail::JailDriver::create(std::move(options));
    ASSERT_TRUE(driver) << driver.error().message();
    driver_ = std::move(*driver);
  }

  void TearDown() override {
    if (driver_) EXPECT_TRUE(driver_->sweep({}));
    driver_.reset();
    // The driver keeps its own directories for the next start.
    for (const auto& hierarchy : std::filesystem::directory_iterator("/sys/fs/cgroup")) {
      ::rmdir((hierarchy.path() / cgroup_prefix_).c_str());
    }
    ::rmdir(("/sys/fs/cgroup/" + cgroup_prefix_).c_str());
  }

  std::string data_dir() {
    const std::string dir = dir_ / "data";
    EXPECT_TRUE(image::make_directories(dir, 0700));
    return dir;
  }

  Recipe recipe(const std::string& name, const std::string& steps, const std::string& from) {
    auto parsed = parse_recipe("name = \"" + name + "\"\nuser = \"root\"\nsteps = ['''" + steps +
                                   "''']\n[from]\n" + from + "\n",
                               dir_ / "recipe");
    EXPECT_TRUE(parsed) << parsed.error().message();
    return *parsed;
  }

  Result<Build> ensure(const Recipe& wanted, RecipeBook book = {}) {
    auto engine = TemplateEngine::open({.data_dir = data_dir(),
                                        .driver = driver_.get(),
                                        .step_program = ALCOVE_STEP_PROGRAM,
                                        .ca_bundle = ca_bundle_,
                                        .recipes = std::move(book)});
    EXPECT_TRUE(engine);
    return engine->ensure(wanted, {});
  }

  image::TempDir dir_;
  std::string ca_bundle_;
  std::string cgroup_prefix_ = "alcove-template-test-" + std::to_string(::getpid());
  std::unique_ptr<jail::JailDriver> driver_;
};

TEST_F(EngineInJail, TurnsWhatStepsDidIntoALayerForOtherJails) {
  const Recipe parent = recipe("parent", R"sh(
    touch /etc/made /etc/tool /tmp/scratch
    ln -s /etc/made /etc/link
    chown 1000:1001 /etc/made
    chmod 4755 /etc/tool
    chmod 2770 /opt
    rm /etc/removed
    rm -r /opt/dir
    mkdir /opt/dir
    chown 1000 /
  )sh",
                               "directory = \"rootfs\"");
  RecipeBook book;
  ASSERT_TRUE(book.add(parent));
  const auto built = ensure(parent);
  ASSERT_TRUE(built) << built.error().message();
  const std::string layer = built->layers[1];
  EXPECT_EQ(image::stat_of(layer).st_uid, 1000u);
  EXPECT_EQ(image::stat_of(layer + "/etc/made").st_uid, 1000u);
  EXPECT_EQ(image::stat_of(layer + "/etc/made").st_gid, 1001u);
  EXPECT_EQ(image::stat_of(layer + "/etc/tool").st_uid, 0u);
  EXPECT_EQ(image::stat_of(layer + "/etc/tool").st_mode & 07777, 04755u);
  EXPECT_TRUE(S_ISCHR(image::stat_of(layer + "/etc/removed").st_mode));

  const auto child = ensure(recipe("child", R"sh(
    test "$(stat -c %u:%g /etc/made)" = 1000:1001
    test "$(stat -c %u:%a /etc/tool)" = 0:4755
    test "$(stat -c %a /opt)" = 2770
    test ! -e /etc/removed
    test ! -e /opt/dir/old
    test -d /opt/dir
    test ! -e /tmp/scratch
    test "$(id -u)" = 0
    test "$(hostname)" = e2b.local
    test "$(cat /etc/hostname)" = e2b.local
    touch /etc/second
  )sh",
                                   "template = \"parent\""),
                            book);
  ASSERT_TRUE(child) << child.error().message();
  EXPECT_EQ(child->layers.size(), built->layers.size() + 1);
}

TEST_F(EngineInJail, TheCaBundleIsThereForStepsAndNotInTheLayer) {
  ca_bundle_ = data_dir() + "/bundle";
  image::write_text(ca_bundle_, "certificates\n");
  const auto built = ensure(recipe("trusting", R"sh(
    test "$(cat "$SSL_CERT_FILE")" = certificates
    test "$(cat /run/alcove/ca-certificates.crt)" = certificates
    touch /etc/made
  )sh",
                                   "directory = \"rootfs\""));
  ASSERT_TRUE(built) << built.error().message();
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(built->layers[1])) {
    names.push_back(entry.path().filename());
  }
  EXPECT_THAT(names, ::testing::UnorderedElementsAre("etc", "made"));
}

TEST_F(EngineInJail, LeavesNothingWhenAStepFails) {
  const auto built =
      ensure(recipe("bad", "touch /etc/half; sleep 1000 & ls /nowhere", "directory = \"rootfs\""));
  ASSERT_FALSE(built);
  EXPECT_THAT(built.error().message(), HasSubstr("step 1/1"));
  EXPECT_THAT(built.error().message(), HasSubstr("/nowhere: No such file"));
  EXPECT_TRUE(std::filesystem::is_empty(data_dir() + "/layers/.stages"));
}

}  // namespace
}  // namespace alcove::templates

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/jupyter_kernel_spec.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

namespace fs = std::filesystem;

class JupyterKernelSpecTest : public ::testing::Test {
 protected:
  JupyterKernelSpecTest() {
    char name[] = "/tmp/alcove-test-specs-XXXXXX";
    root_ = ::mkdtemp(name);
  }
  ~JupyterKernelSpecTest() override { fs::remove_all(root_); }

  void put(const std::string& kernel, const std::string& text) {
    fs::create_directories(cat(root_, '/', kernel));
    std::ofstream(cat(root_, '/', kernel, "/kernel.json")) << text;
  }

  std::string root_;
};

TEST_F(JupyterKernelSpecTest, ReadsEverythingThatMatters) {
  const auto spec = parse_jupyter_kernel_spec(
      R"({"argv": ["x", "-f", "{connection_file}", "{resource_dir}/lib"], "language": "X",
          "display_name": "X", "env": {"A": "b", "N": 1}, "interrupt_mode": "message"})",
      "x", "/k/x");
  ASSERT_TRUE(spec);
  EXPECT_EQ(spec->language, "X");
  EXPECT_EQ(spec->env, (std::map<std::string, std::string>{{"A", "b"}}));
  EXPECT_EQ(spec->interrupt_mode, JupyterKernelSpec::InterruptMode::kMessage);
  EXPECT_EQ(jupyter_kernel_command(*spec, "/run/c.json"),
            (std::vector<std::string>{"x", "-f", "/run/c.json", "/k/x/lib"}));
}

TEST_F(JupyterKernelSpecTest, RefusesWhatCannotBeStarted) {
  for (const std::string_view bad :
       {"", "[]", "{}", R"({"argv": []})", R"({"argv": "x"})", R"({"argv": ["x", 1]})"}) {
    EXPECT_FALSE(parse_jupyter_kernel_spec(bad, "x", "/k/x")) << bad;
  }
}

TEST_F(JupyterKernelSpecTest, TheNameComesBeforeTheLanguage) {
  put("ir", R"({"argv": ["R"], "language": "R"})");
  put("broken", "{");
  put("other", R"({"argv": ["ir-like"], "language": "ir"})");
  const std::vector<std::string> dirs = {"/nowhere", root_};
  EXPECT_EQ(find_jupyter_kernel(dirs, "r")->name, "ir");
  EXPECT_EQ(find_jupyter_kernel(dirs, "ir")->name, "ir");
  EXPECT_EQ(find_jupyter_kernel(dirs, "Other")->name, "other");
  for (const std::string_view missing : {"deno", "broken", "../ir", "", "."}) {
    const auto spec = find_jupyter_kernel(dirs, missing);
    ASSERT_FALSE(spec) << missing;
    EXPECT_EQ(spec.error().code(), Code::kNotFound);
  }
}

TEST_F(JupyterKernelSpecTest, LooksWhereJupyterDoes) {
  fs::create_directories(root_ + "/bin");
  std::ofstream(root_ + "/bin/python3") << "";
  EXPECT_EQ(
      jupyter_kernel_dirs({{"JUPYTER_PATH", "/a:/b"},
                           {"HOME", "/root"},
                           {"PATH", cat("/nowhere/bin:", root_, "/bin:/usr/bin")}}),
      (std::vector<std::string>{"/a/kernels", "/b/kernels", "/root/.local/share/jupyter/kernels",
                                root_ + "/share/jupyter/kernels",
                                "/usr/local/share/jupyter/kernels", "/usr/share/jupyter/kernels"}));
}

}  // namespace
}  // namespace alcove::interpreter

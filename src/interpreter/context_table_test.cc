// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/context_table.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>

#include "base/strings.h"
#include "interpreter/testing/fake_kernel.h"
#include "net/testing/loop_runner.h"

namespace alcove::interpreter {
namespace {

using net::testing::run;
using testing::FakeKernels;

class ContextTableTest : public ::testing::Test {
 protected:
  std::vector<std::string> languages() const {
    std::vector<std::string> found;
    for (const auto& context : table_.list()) found.push_back(context->info().language);
    return found;
  }

  boost::asio::io_context loop_;
  FakeKernels kernels_{loop_.get_executor()};
  std::string directory_;
  std::optional<uint64_t> memory_;
  ContextTable table_{
      loop_.get_executor(),
      [this](const std::string& language, KernelSetup setup) -> Result<std::unique_ptr<Kernel>> {
        if (language == "cobol") return fail(Code::kNotFound, "no cobol");
        directory_ = setup.directory;
        return kernels_.make();
      },
      {.directory = "/usr", .environment = {}, .free_memory = [this] { return memory_; }}};
};

TEST_F(ContextTableTest, StartListsTheDefaultsAndStartsPythonOnly) {
  table_.start();
  net::testing::run_until(loop_, [&] { return kernels_.made() == 1; });
  EXPECT_EQ(languages(), (std::vector<std::string>{"python", "javascript"}));
  EXPECT_EQ(kernels_.made(), 1);
}

TEST_F(ContextTableTest, ADefaultIsMadeOnce) {
  const auto bash = table_.find_default("bash");
  ASSERT_TRUE(bash);
  EXPECT_EQ(*table_.find_default("bash"), *bash);
  EXPECT_EQ((*bash)->info().cwd, "/usr");
  EXPECT_EQ(table_.find((*bash)->info().id), *bash);
  EXPECT_EQ(kernels_.made(), 0);
}

TEST_F(ContextTableTest, CreatedContextsAreNeverTheDefault) {
  const auto made = run(loop_, table_.create("python", ""));
  ASSERT_TRUE(made);
  EXPECT_EQ((*made)->info().cwd, "/usr");
  EXPECT_NE(*table_.find_default("python"), *made);
  EXPECT_EQ(kernels_.made(), 1);
}

TEST_F(ContextTableTest, ARemovedDefaultIsMadeAgain) {
  const auto first = *table_.find_default("python");
  run(loop_, table_.remove(first));
  EXPECT_EQ(table_.find(first->info().id), nullptr);
  EXPECT_NE(*table_.find_default("python"), first);
}

TEST_F(ContextTableTest, DirectoriesMustBeThere) {
  for (const char* bad : {"/no/such/place", "/etc/passwd", "nowhere"}) {
    const auto made = run(loop_, table_.create("python", bad));
    ASSERT_FALSE(made) << bad;
    EXPECT_EQ(made.error().code(), Code::kInvalidArgument);
  }
  const std::string with_nul("/usr\0/bin", 9);
  EXPECT_FALSE(run(loop_, table_.create("python", with_nul)));
  EXPECT_TRUE(table_.list().empty());
  const auto relative = run(loop_, table_.create("python", "bin"));
  ASSERT_TRUE(relative);
  EXPECT_EQ((*relative)->info().cwd, "/usr/bin");
  EXPECT_EQ(directory_, "/usr/bin");
}

TEST_F(ContextTableTest, AKernelWhoseDirectoryHasVanishedStartsInTheDefault) {
  const std::string gone = cat("/tmp/alcove-test-context-table-", ::getpid());
  ASSERT_EQ(::mkdir(gone.c_str(), 0755), 0);
  const auto made = run(loop_, table_.create("python", gone));
  ASSERT_TRUE(made);
  EXPECT_EQ(directory_, gone);
  ASSERT_EQ(::rmdir(gone.c_str()), 0);
  ASSERT_TRUE(run(loop_, (*made)->restart()));
  EXPECT_EQ(directory_, "/usr");
  EXPECT_EQ((*made)->info().cwd, gone) << "it may come back";
}

TEST_F(ContextTableTest, NothingIsListedOfWhatCouldNotBeMade) {
  const auto unknown = run(loop_, table_.create("cobol", ""));
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kNotFound);
  EXPECT_FALSE(table_.find_default("cobol"));
  kernels_.fail_starts("no such luck");
  const auto failed = run(loop_, table_.create("python", ""));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "no such luck");
  EXPECT_TRUE(table_.list().empty());
}

TEST_F(ContextTableTest, NoneIsMadeForWhichAnotherWouldHaveToEnd) {
  memory_ = uint64_t{64} << 20;
  const auto made = run(loop_, table_.create("python", ""));
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kResourceExhausted);
  EXPECT_NE(made.error().message().find("64 MiB are free"), std::string::npos);
  EXPECT_TRUE(table_.list().empty());
  EXPECT_EQ(kernels_.made(), 0);
  memory_ = uint64_t{1} << 30;
  EXPECT_TRUE(run(loop_, table_.create("python", "")));
}

TEST_F(ContextTableTest, ThereIsAnEnd) {
  Result<ContextTable::ContextPtr> made = nullptr;
  int count = 0;
  while (count < 1000 && (made = run(loop_, table_.create("bash", "")))) ++count;
  EXPECT_EQ(count, 256);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code(), Code::kResourceExhausted);
  run(loop_, table_.remove(table_.list().front()));
  EXPECT_TRUE(run(loop_, table_.create("bash", "")));
}

}  // namespace
}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/memory_left.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace alcove::interpreter {
namespace {

class MemoryLeftTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) {
    const std::filesystem::path path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  std::optional<uint64_t> left() { return memory_left(folder_.string()); }

  std::filesystem::path folder_ = std::filesystem::path(::testing::TempDir()) / "memory_left_test";
};

TEST_F(MemoryLeftTest, OfEitherVersion) {
  put("memory.max", "1000\n");
  put("memory.current", "700\n");
  put("memory.stat", "anon 300\nfile 350\ninactive_file 200\nactive_file 100\nactive_anon 9\n");
  EXPECT_EQ(left(), 600u);
  put("memory/memory.limit_in_bytes", "1000\n");
  put("memory/memory.usage_in_bytes", "900\n");
  put("memory/memory.stat", "inactive_file 1\ntotal_inactive_file 50\ntotal_active_file 50\n");
  EXPECT_EQ(left(), 200u);
}

TEST_F(MemoryLeftTest, NeverLessThanNothing) {
  put("memory.max", "1000\n");
  put("memory.current", "1200\n");
  EXPECT_EQ(left(), 0u);
}

TEST_F(MemoryLeftTest, WithoutALimitNothingIsKnown) {
  EXPECT_FALSE(left());
  put("memory.max", "max\n");
  put("memory.current", "700\n");
  EXPECT_FALSE(left());
  put("memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("memory/memory.usage_in_bytes", "900\n");
  EXPECT_FALSE(left());
}

}  // namespace
}  // namespace alcove::interpreter

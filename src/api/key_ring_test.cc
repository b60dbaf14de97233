// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/key_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>

#include "api/key_maker.h"
#include "base/sha256.h"
#include "net/testing/loop_runner.h"
#include "store/testing/memory_store.h"

namespace alcove::api {
namespace {

using std::chrono::milliseconds;

class KeyRingTest : public ::testing::Test {
 protected:
  KeyRingTest() {
    store_.before_call = [this](std::string_view call) -> Result<void> {
      if (call == "list_keys") ++readings_;
      if (broken_) return fail(Code::kInternal, "disk on fire");
      return {};
    };
  }

  Result<std::optional<Principal>> ask(KeyRing& ring, const std::string& key) {
    return net::testing::run(loop_, ring.authenticate(key));
  }
  std::string new_key() { return make_key(store_, clock_, "default", "test").value().secret; }

  boost::asio::io_context loop_{1};
  SystemClock clock_;
  std::atomic<int> readings_ = 0;
  std::atomic<bool> broken_ = false;
  store::testing::MemoryStore store_;
  net::BlockingPool pool_{"test", /*max_threads=*/2, /*max_queued=*/10};
};

TEST_F(KeyRingTest, KnowsTeamAndKey) {
  const NewKey made = make_key(store_, clock_, "default", "laptop").value();
  KeyRing ring(store_, pool_);
  ASSERT_TRUE(ring.load());
  const auto found = ask(ring, made.secret);
  ASSERT_TRUE(found && *found);
  EXPECT_EQ((*found)->team, made.team.id);
  EXPECT_EQ((*found)->team_name, "default");
  EXPECT_EQ((*found)->key, made.record.id);
  EXPECT_EQ(readings_, 1) << "a known key needs no reading";
}

TEST_F(KeyRingTest, HashOfAKeyIsNoKey) {
  const std::string key = new_key();
  KeyRing ring(store_, pool_);
  EXPECT_FALSE(ask(ring, sha256_hex(key)).value());
  EXPECT_FALSE(ask(ring, "").value());
}

TEST_F(KeyRingTest, NewKeyIsFoundRightAfterARefusal) {
  KeyRing ring(store_, pool_, {.min_interval = milliseconds(50), .max_age = milliseconds(5000)});
  EXPECT_FALSE(ask(ring, "e2b_unknown").value());
  const std::string key = new_key();
  EXPECT_TRUE(ask(ring, key).value());
}

TEST_F(KeyRingTest, ManyUnknownKeysShareOneReading) {
  KeyRing ring(store_, pool_, {.min_interval = milliseconds(100), .max_age = milliseconds(5000)});
  ASSERT_TRUE(ring.load());
  int refused = 0;
  for (int i = 0; i < 200; ++i) {
    boost::asio::co_spawn(loop_, ring.authenticate("e2b_" + std::to_string(i)),
                          [&](std::exception_ptr, Result<std::optional<Principal>> result) {
                            if (result && !*result) ++refused;
                          });
  }
  net::testing::run_until(loop_, [&] { return refused == 200; });
  EXPECT_LE(readings_, 3);
}

TEST_F(KeyRingTest, RemovedKeyStopsWorking) {
  const NewKey made = make_key(store_, clock_, "default", "laptop").value();
  KeyRing ring(store_, pool_, {.min_interval = milliseconds(1), .max_age = milliseconds(0)});
  ASSERT_TRUE(ask(ring, made.secret).value());
  ASSERT_TRUE(store_.remove_key(made.record.id));
  EXPECT_FALSE(ask(ring, made.secret).value());
}

TEST_F(KeyRingTest, UnreadableStoreIsAnErrorForUnknownKeysOnly) {
  const std::string key = new_key();
  KeyRing ring(store_, pool_, {.min_interval = milliseconds(1), .max_age = milliseconds(0)});
  ASSERT_TRUE(ring.load());
  broken_ = true;
  EXPECT_TRUE(ask(ring, key).value());
  const auto unknown = ask(ring, "e2b_unknown");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().code(), Code::kInternal);
  broken_ = false;
  EXPECT_FALSE(ask(ring, "e2b_unknown").value());
}

TEST_F(KeyRingTest, FullPoolDoesNotBlockLaterReadings) {
  net::BlockingPool small("small", /*max_threads=*/1, /*max_queued=*/1);
  std::atomic<bool> running = false;
  std::atomic<bool> go_on = false;
  const auto block = [&] {
    running = true;
    while (!go_on) std::this_thread::sleep_for(milliseconds(1));
  };
  // The queue is full only when its thread has taken the first job.
  ASSERT_TRUE(small.submit(block));
  while (!running) std::this_thread::sleep_for(milliseconds(1));
  while (small.submit(block)) {
  }
  const std::string key = new_key();
  KeyRing ring(store_, small, {.min_interval = milliseconds(1), .max_age = milliseconds(5000)});
  const auto refused = ask(ring, key);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kResourceExhausted);
  go_on = true;
  for (int attempt = 0; attempt < 1000; ++attempt) {
    if (const auto found = ask(ring, key); found && *found) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  FAIL() << "the key was never found again";
}

TEST_F(KeyRingTest, SeveralLoopsMayAskAtOnce) {
  const std::string key = new_key();
  KeyRing ring(store_, pool_, {.min_interval = milliseconds(1), .max_age = milliseconds(2)});
  std::atomic<int> found = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&] {
      boost::asio::io_context loop(1);
      for (int i = 0; i < 100; ++i) {
        const auto result = net::testing::run(loop, ring.authenticate(key));
        if (result && *result) ++found;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 300);
}

}  // namespace
}  // namespace alcove::api

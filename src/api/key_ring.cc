// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/key_ring.h"

#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "base/log.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "net/timer.h"

namespace alcove::api {
namespace {

using SteadyClock = std::chrono::steady_clock;
using Keys = std::unordered_map<std::string, Principal>;

// How often to look whether another task's reading of the store is done. It takes well under a
// millisecond.
constexpr std::chrono::milliseconds kPoll{2};

Result<Keys> read_keys(store::Store& store) {
  ALCOVE_TRY_ASSIGN(const auto teams, store.list_teams());
  std::map<TeamId, std::string> names;
  for (const store::Team& team : teams) names[team.id] = team.name;
  ALCOVE_TRY_ASSIGN(const auto records, store.list_keys());
  Keys keys;
  for (const store::ApiKey& record : records) {
    keys[record.sha256_hex] =
        Principal{.team = record.team, .team_name = names[record.team], .key = record.id};
  }
  return keys;
}

}  // namespace

// Shared with jobs on the pool, which may outlast a canceled request.
struct KeyRing::State {
  explicit State(store::Store& store_to_read) : store(store_to_read) {}

  std::optional<Principal> find(const std::string& hash) {
    const std::lock_guard lock(mutex);
    const auto found = keys.find(hash);
    return found == keys.end() ? std::nullopt : std::optional(found->second);
  }

  Result<void> load() {
    auto fresh = read_keys(store);
    const std::lock_guard lock(mutex);
    if (!fresh) {
      failure = std::move(fresh).error();
      return fail(*failure);
    }
    keys = std::move(*fresh);
    failure.reset();
    return {};
  }

  store::Store& store;
  std::mutex mutex;
  Keys keys;
  bool loading = false;
  // When the last reading began, and why it failed if it did.
  SteadyClock::time_point began{};
  std::optional<Error> failure;
};

namespace {

// Marks the end of a reading, also of one that the pool refused or whose task was canceled.
template <typename State>
class LoadingMark {
 public:
  explicit LoadingMark(std::shared_ptr<State> state) : state_(std::move(state)) {}
  LoadingMark(LoadingMark&&) noexcept = default;
  LoadingMark& operator=(LoadingMark&&) = delete;
  ~LoadingMark() {
    if (!state_) return;
    const std::lock_guard lock(state_->mutex);
    state_->loading = false;
  }

  State& state() { return *state_; }

 private:
  std::shared_ptr<State> state_;
};

}  // namespace

KeyRing::KeyRing(store::Store& store, net::BlockingPool& pool) : KeyRing(store, pool, Options()) {}

KeyRing::KeyRing(store::Store& store, net::BlockingPool& pool, Options options)
    : state_(std::make_shared<State>(store)), pool_(pool), options_(options) {}

Result<void> KeyRing::load() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->began = SteadyClock::now();
  }
  return state_->load();
}

Task<Result<std::optional<Principal>>> KeyRing::authenticate(std::string key) {
  const std::string hash = sha256_hex(key);
  const auto now = SteadyClock::now();
  const std::optional<Principal> known = state_->find(hash);
  auto loaded = co_await load_since(known ? now - options_.max_age : now);
  if (loaded) co_return state_->find(hash);
  if (!known) co_return fail(std::move(loaded).error().context("read API keys"));
  // It was good when the store could last be read.
  log_warn(cat("read API keys: ", loaded.error().message()));
  co_return known;
}

// Returns when a reading that began at `since` or later is done.
Task<Result<void>> KeyRing::load_since(SteadyClock::time_point since) {
  for (;;) {
    SteadyClock::duration wait = kPoll;
    bool start = false;
    {
      const std::lock_guard lock(state_->mutex);
      if (!state_->loading) {
        if (state_->began >= since) {
          if (state_->failure) co_return fail(*state_->failure);
          co_return Result<void>{};
        }
        const auto now = SteadyClock::now();
        wait = state_->began + options_.min_interval - now;
        if (wait <= SteadyClock::duration::zero()) {
          start = true;
          state_->loading = true;
          state_->began = now;
        }
      }
    }
    if (start) {
      auto job = [mark = LoadingMark<State>(state_)]() mutable { return mark.state().load(); };
      auto loaded = co_await pool_.run(std::move(job));
      co_return loaded;
    }
    co_await net::sleep_for(wait);
  }
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "network/namespace_pair_pool.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"

namespace alcove::network {

NamespacePairPool::NamespacePairPool(NamespaceMaker& maker, IdBlocks& blocks, Options options)
    : maker_(maker), blocks_(blocks), options_(options), thread_([this] { refill_loop(); }) {}

NamespacePairPool::~NamespacePairPool() {
  {
    const std::lock_guard guard(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

Result<NamespacePair> NamespacePairPool::take(const std::string& key) {
  {
    const std::lock_guard guard(mutex_);
    Key& state = keys_[key];
    state.last_used = ++uses_;
    std::optional<NamespacePair> pair;
    if (!state.ready.empty()) {
      pair = std::move(state.ready.front());
      state.ready.pop_front();
      ++state.leased;
    }
    // Half empty, not sooner: making pairs takes CPU time from the boot that is under way.
    const size_t have = state.ready.size();
    if (!state.filling && have < options_.pairs_per_key && have <= options_.pairs_per_key / 2) {
      state.filling = true;
      wanted_.push_back(key);
      wake_.notify_one();
    }
    if (pair) return std::move(*pair);
  }
  ALCOVE_TRY_ASSIGN(const Reservation reservation, reserve(key, 1));
  auto made = maker_.make_pairs(reservation.parent->fd.get(), reservation.ranges);
  if (!made) {
    cancel(reservation);
    return fail(std::move(made).error());
  }
  const std::lock_guard guard(mutex_);
  ++keys_[key].leased;
  return std::move(made->front());
}

void NamespacePairPool::give_back(const std::string& key, IdRange range) {
  const std::lock_guard guard(mutex_);
  const auto found = keys_.find(key);
  if (found == keys_.end()) return;
  for (const auto& ns : found->second.namespaces) {
    if (ns->block != range.block || !ns->taken.test(range.index)) continue;
    ns->taken.reset(range.index);
    --found->second.leased;
  }
}

Result<void> NamespacePairPool::adopt(const std::string& key, IdRange range, UniqueFd template_ns) {
  ALCOVE_TRY(blocks_.claim(range.block));
  const std::lock_guard guard(mutex_);
  Key& state = keys_[key];
  auto found = std::ranges::find(state.namespaces, range.block, &TemplateNamespace::block);
  if (found == state.namespaces.end()) {
    auto adopted = std::make_shared<TemplateNamespace>();
    adopted->block = range.block;
    adopted->fd = std::move(template_ns);
    state.namespaces.push_back(std::move(adopted));
    found = std::prev(state.namespaces.end());
  }
  if ((*found)->taken.test(range.index)) {
    return fail(Code::kAlreadyExists, cat("id range ", range.index, " is taken twice"));
  }
  (*found)->taken.set(range.index);
  ++state.leased;
  return {};
}

void NamespacePairPool::warm(const std::string& key) {
  const std::lock_guard guard(mutex_);
  Key& state = keys_[key];
  if (state.filling || state.ready.size() >= options_.pairs_per_key) return;
  state.last_used = ++uses_;
  state.filling = true;
  wanted_.push_back(key);
  wake_.notify_one();
}

size_t NamespacePairPool::ready_count(const std::string& key) const {
  const std::lock_guard guard(mutex_);
  const auto found = keys_.find(key);
  return found == keys_.end() ? 0 : found->second.ready.size();
}

std::optional<NamespacePairPool::Reservation> NamespacePairPool::try_reserve(const std::string& key,
                                                                             uint32_t count) {
  const std::lock_guard guard(mutex_);
  for (const auto& ns : keys_[key].namespaces) {
    Reservation reservation{ns, {}};
    for (uint32_t i = 1; i < kRangesPerBlock && reservation.ranges.size() < count; ++i) {
      if (!ns->taken.test(i)) reservation.ranges.push_back({ns->block, i});
    }
    if (reservation.ranges.empty()) continue;
    for (const IdRange& range : reservation.ranges) ns->taken.set(range.index);
    return reservation;
  }
  return std::nullopt;
}

Result<NamespacePairPool::Reservation> NamespacePairPool::reserve(const std::string& key,
                                                                  uint32_t count) {
  if (auto reservation = try_reserve(key, count)) return std::move(*reservation);
  const std::lock_guard growth(growth_mutex_);
  // Another thread may have added one meanwhile.
  if (auto reservation = try_reserve(key, count)) return std::move(*reservation);
  ALCOVE_TRY_ASSIGN(const uint32_t block, acquire_block(key));
  auto fd = maker_.make_template_namespace(block);
  if (!fd) {
    blocks_.release(block);
    return fail(std::move(fd).error());
  }
  Reservation reservation{std::make_shared<TemplateNamespace>(), {}};
  reservation.parent->block = block;
  reservation.parent->fd = std::move(*fd);
  for (uint32_t i = 1; i <= std::min(count, kRangesPerBlock - 1); ++i) {
    reservation.ranges.push_back({block, i});
    reservation.parent->taken.set(i);
  }
  const std::lock_guard guard(mutex_);
  keys_[key].namespaces.push_back(reservation.parent);
  evict_idle(key);
  return reservation;
}

void NamespacePairPool::cancel(const Reservation& reservation) {
  const std::lock_guard guard(mutex_);
  for (const IdRange& range : reservation.ranges) reservation.parent->taken.reset(range.index);
}

Result<uint32_t> NamespacePairPool::acquire_block(const std::string& for_key) {
  for (;;) {
    auto block = blocks_.acquire();
    if (block || block.error().code() != Code::kResourceExhausted) return block;
    const std::lock_guard guard(mutex_);
    if (!evict_one(for_key)) return block;
  }
}

// Drops everything of the longest unused key that has no sandbox. Needs mutex_.
bool NamespacePairPool::evict_one(const std::string& except) {
  auto oldest = keys_.end();
  for (auto key = keys_.begin(); key != keys_.end(); ++key) {
    const Key& state = key->second;
    if (key->first == except || state.leased > 0 || state.filling || state.namespaces.empty()) {
      continue;
    }
    // A take() that is under way holds a reservation.
    size_t taken = 0;
    for (const auto& ns : state.namespaces) taken += ns->taken.count() - 1;
    if (taken != state.ready.size()) continue;
    if (oldest == keys_.end() || state.last_used < oldest->second.last_used) oldest = key;
  }
  if (oldest == keys_.end()) return false;
  for (const auto& ns : oldest->second.namespaces) blocks_.release(ns->block);
  keys_.erase(oldest);
  return true;
}

// Needs mutex_.
void NamespacePairPool::evict_idle(const std::string& except) {
  auto idle = std::ranges::count_if(keys_, [](const auto& key) { return key.second.leased == 0; });
  while (idle > options_.idle_keys && evict_one(except)) --idle;
}

void NamespacePairPool::refill_loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stopping_ || !wanted_.empty(); });
    if (stopping_) return;
    const std::string key = std::move(wanted_.front());
    wanted_.pop_front();
    lock.unlock();
    refill(key);
    lock.lock();
    keys_[key].filling = false;
  }
}

void NamespacePairPool::refill(const std::string& key) {
  for (;;) {
    uint32_t missing = 0;
    {
      const std::lock_guard guard(mutex_);
      const size_t have = keys_[key].ready.size();
      if (stopping_ || have >= options_.pairs_per_key) return;
      missing = options_.pairs_per_key - static_cast<uint32_t>(have);
    }
    auto reservation = reserve(key, missing);
    if (!reservation) {
      log_warn(cat("namespace pool: ", reservation.error().message()));
      return;
    }
    auto made = maker_.make_pairs(reservation->parent->fd.get(), reservation->ranges);
    if (!made) {
      cancel(*reservation);
      log_warn(cat("namespace pool: ", made.error().message()));
      return;
    }
    const std::lock_guard guard(mutex_);
    for (NamespacePair& pair : *made) keys_[key].ready.push_back(std::move(pair));
  }
}

}  // namespace alcove::network

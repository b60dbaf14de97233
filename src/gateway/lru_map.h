// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace alcove::gateway {

// A map from strings that holds so many entries; the one not used for longest makes room.
template <typename Value>
class LruMap {
 public:
  explicit LruMap(size_t most) : most_(most) {}

  // nullptr if there is none. Valid until the next put() or erase().
  Value* find(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found->second);
    return &found->second->second;
  }

  // Replaces what is there.
  Value* put(const std::string& key, Value value) {
    erase(key);
    if (!entries_.empty() && entries_.size() >= most_) {
      index_.erase(entries_.back().first);
      entries_.pop_back();
    }
    entries_.emplace_front(key, std::move(value));
    index_[key] = entries_.begin();
    return &entries_.front().second;
  }

  void erase(const std::string& key) {
    const auto found = index_.find(key);
    if (found == index_.end()) return;
    entries_.erase(found->second);
    index_.erase(found);
  }

  size_t size() const { return entries_.size(); }

 private:
  using Entries = std::list<std::pair<std::string, Value>>;

  const size_t most_;
  // Used last at the front.
  Entries entries_;
  std::unordered_map<std::string, typename Entries::iterator> index_;
};

}  // namespace alcove::gateway

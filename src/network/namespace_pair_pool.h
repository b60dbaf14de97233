// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <bitset>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "network/id_blocks.h"
#include "network/id_range.h"

namespace alcove::network {

// A user namespace that maps one range, and a network namespace it owns that is ready for the relay
// (guest_network.h).
struct NamespacePair {
  IdRange range;
  UniqueFd user_ns;
  UniqueFd net_ns;
};

// Makes namespaces; what a multithreaded server cannot do itself. Thread-safe.
class NamespaceMaker {
 public:
  virtual ~NamespaceMaker() = default;
  // A user namespace below the host's that maps the whole block from id 0 on.
  virtual Result<UniqueFd> make_template_namespace(uint32_t block) = 0;
  // Pairs whose user namespaces are children of `template_ns`. All or none.
  virtual Result<std::vector<NamespacePair>> make_pairs(int template_ns,
                                                        const std::vector<IdRange>& ranges) = 0;
};

// Keeps prepared namespace pairs per key (template build), each used once. A pair's user namespace
// is a child of its key's template namespace, which a second one follows when its ranges are used
// up. Refills itself from a thread of its own. Thread-safe; `maker` and `blocks` outlive it.
class NamespacePairPool {
 public:
  struct Options {
    uint32_t pairs_per_key = 8;
    // Keys without a sandbox that may hold prepared pairs; the longest unused goes first.
    uint32_t idle_keys = 32;
  };

  NamespacePairPool(NamespaceMaker& maker, IdBlocks& blocks, Options options);
  ~NamespacePairPool();
  NamespacePairPool(const NamespacePairPool&) = delete;
  NamespacePairPool& operator=(const NamespacePairPool&) = delete;

  // A prepared pair, or one made now. Its range stays taken until give_back().
  Result<NamespacePair> take(const std::string& key);
  void give_back(const std::string& key, IdRange range);

  // Takes over the range of a sandbox that an earlier server started, and its template namespace.
  Result<void> adopt(const std::string& key, IdRange range, UniqueFd template_ns);

  // Prepares pairs for the key in the background.
  void warm(const std::string& key);

  size_t ready_count(const std::string& key) const;

 private:
  struct TemplateNamespace {
    uint32_t block = 0;
    UniqueFd fd;
    std::bitset<kRangesPerBlock> taken{1};  // range 0 is the namespace's own
  };
  struct Key {
    std::vector<std::shared_ptr<TemplateNamespace>> namespaces;
    std::deque<NamespacePair> ready;
    uint32_t leased = 0;  // ranges of sandboxes
    uint64_t last_used = 0;
    bool filling = false;
  };
  struct Reservation {
    std::shared_ptr<TemplateNamespace> parent;
    std::vector<IdRange> ranges;
  };

  Result<Reservation> reserve(const std::string& key, uint32_t count);
  std::optional<Reservation> try_reserve(const std::string& key, uint32_t count);
  void cancel(const Reservation& reservation);
  Result<uint32_t> acquire_block(const std::string& for_key);
  bool evict_one(const std::string& except);
  void evict_idle(const std::string& except);
  void refill_loop();
  void refill(const std::string& key);

  NamespaceMaker& maker_;
  IdBlocks& blocks_;
  const Options options_;

  std::mutex growth_mutex_;  // one new template namespace at a time; taken before mutex_
  mutable std::mutex mutex_;
  std::map<std::string, Key> keys_;
  uint64_t uses_ = 0;
  std::deque<std::string> wanted_;
  bool stopping_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace alcove::network

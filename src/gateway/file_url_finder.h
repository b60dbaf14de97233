// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>

#include <tl/expected.hpp>

#include "base/ids.h"
#include "gateway/lru_map.h"
#include "http/message.h"
#include "node/node.h"

namespace alcove::gateway {

// Finds the sandbox that a signed file URL is for when neither host nor header says so
// (protocol/control-plane.md 1.8, L1): the secured one whose token makes this signature. That costs
// a hash for each live sandbox and anyone may ask, so every client gets so many searches without
// a result, and all together too; what was found is remembered. Shared by all loops, thread-safe.
class FileUrlFinder {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  struct Rate {
    // Searches without a result in a row, and how many come back in a second.
    double burst = 0;
    double per_second = 0;
  };
  struct Limits {
    Rate client = {.burst = 200, .per_second = 50};
    // Of all clients: somebody may have many addresses. With 2,000 sandboxes a search takes a loop
    // about a millisecond.
    Rate all = {.burst = 1000, .per_second = 200};
    // Signatures and clients that are remembered.
    size_t remembered = 4096;
  };

  explicit FileUrlFinder(const node::Node& node) : FileUrlFinder(node, Limits()) {}
  FileUrlFinder(const node::Node& node, Limits limits)
      : node_(node), limits_(limits), known_(limits.remembered), clients_(limits.remembered) {}

  enum class Miss { kUnknown, kTooOften };
  // `client` is a client_network(). Whether the signature has expired is left to the agent, whose
  // answer says so.
  tl::expected<SandboxId, Miss> find(const http::RequestHead& request, const std::string& client,
                                     TimePoint now);

 private:
  struct Budget {
    double searches = 0;
    TimePoint at;

    // Adds what came back since then.
    void refill(const Rate& rate, TimePoint now);
  };

  node::LiveSandboxPtr recall(const std::string& signature);
  bool may_search(const std::string& client, TimePoint now);
  void remember(const std::string& signature, const SandboxId& id, const std::string& client);

  const node::Node& node_;
  const Limits limits_;
  std::mutex mutex_;
  LruMap<SandboxId> known_;
  LruMap<Budget> clients_;
  Budget all_{.searches = limits_.all.burst, .at = {}};
};

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <tl/expected.hpp>

#include "base/ids.h"

namespace alcove::gateway {

// The requests that wait for a service that is just starting. Whoever may send requests may send
// any number of them to a port that nobody opens, and each would be held for a second: their number
// is bounded, for one sandbox and in all. Shared by all loops; thread-safe.
class WaitingRequests {
 public:
  struct Limits {
    size_t of_sandbox = 128;
    size_t all = 2048;
  };
  enum class Full { kSandbox, kServer };

  // One that waits; as long as this lives.
  class Place {
   public:
    Place(WaitingRequests& requests, SandboxId id) : requests_(&requests), id_(std::move(id)) {}
    ~Place() {
      if (requests_ != nullptr) requests_->leave(id_);
    }
    Place(Place&& other) noexcept
        : requests_(std::exchange(other.requests_, nullptr)), id_(std::move(other.id_)) {}
    Place& operator=(Place&&) = delete;

   private:
    WaitingRequests* requests_;
    SandboxId id_;
  };

  WaitingRequests() : WaitingRequests(Limits{}) {}
  explicit WaitingRequests(Limits limits) : limits_(limits) {}
  WaitingRequests(const WaitingRequests&) = delete;
  WaitingRequests& operator=(const WaitingRequests&) = delete;

  // The place is outlived by this object.
  tl::expected<Place, Full> enter(const SandboxId& id) {
    const std::lock_guard lock(mutex_);
    if (all_ >= limits_.all) return tl::unexpected(Full::kServer);
    size_t& count = of_sandbox_[id];
    // One that is full has an entry, so none is left behind here.
    if (count >= limits_.of_sandbox) return tl::unexpected(Full::kSandbox);
    ++count;
    ++all_;
    return Place(*this, id);
  }

  const Limits& limits() const { return limits_; }
  size_t count() const {
    const std::lock_guard lock(mutex_);
    return all_;
  }

 private:
  void leave(const SandboxId& id) {
    const std::lock_guard lock(mutex_);
    --all_;
    const auto found = of_sandbox_.find(id);
    if (--found->second == 0) of_sandbox_.erase(found);
  }

  const Limits limits_;
  mutable std::mutex mutex_;
  std::unordered_map<SandboxId, size_t> of_sandbox_;
  size_t all_ = 0;
};

}  // namespace alcove::gateway

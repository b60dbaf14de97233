// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <utility>

namespace alcove::api {

// Whether a create of `base` would succeed, and until then what the server is busy with. Set by
// main, shown by GET /health. Thread-safe.
class Readiness {
 public:
  void set_progress(std::string what) {
    const std::lock_guard lock(mutex_);
    pending_ = std::move(what);
  }
  void set_ready() {
    const std::lock_guard lock(mutex_);
    pending_.reset();
  }
  // What is not done yet; nothing when the server is ready.
  std::optional<std::string> pending() const {
    const std::lock_guard lock(mutex_);
    return pending_;
  }

 private:
  mutable std::mutex mutex_;
  std::optional<std::string> pending_ = "starting";
};

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <mutex>

#include "base/ids.h"

namespace alcove::api {

// Whose sandboxes are being killed by requests right now. The node no longer finds them, but a
// second kill by the same team waits and succeeds with the first. Thread-safe.
class KillsUnderWay {
 public:
  // Counts a kill until it is destroyed.
  class Mark {
   public:
    Mark(KillsUnderWay& kills, SandboxId id, const TeamId& team);
    Mark(const Mark&) = delete;
    Mark& operator=(const Mark&) = delete;
    ~Mark();

   private:
    KillsUnderWay& kills_;
    SandboxId id_;
  };

  bool contains(const SandboxId& id, const TeamId& team) const;

 private:
  struct Entry {
    TeamId team;
    int count = 0;
  };
  mutable std::mutex mutex_;
  std::map<SandboxId, Entry> entries_;
};

}  // namespace alcove::api

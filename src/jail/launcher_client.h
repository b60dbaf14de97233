// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/unique_fd.h"
#include "jail/launch_protocol.h"
#include "network/namespace_pair_pool.h"

namespace alcove::jail {

// The driver's end of the launcher. Starts it, and starts it again when it has died. Thread-safe.
class LauncherClient final : public network::NamespaceMaker {
 public:
  LauncherClient(std::string program, std::vector<std::string> dirs,
                 std::chrono::milliseconds timeout);
  // Ends the launcher by closing its socket.
  ~LauncherClient() override;

  Result<void> start();

  struct Started {
    pid_t pid = 0;
    UniqueFd pidfd;
  };
  // Returns when the agent runs. On failure no process of the sandbox is left.
  Result<Started> boot(const BootRequest& request, const std::vector<int>& fds);

  Result<UniqueFd> make_template_namespace(uint32_t block) override;
  Result<std::vector<network::NamespacePair>> make_pairs(
      int template_ns, const std::vector<network::IdRange>& ranges) override;

  pid_t pid() const;

 private:
  Result<void> start_locked();
  void stop_locked();
  // Sends the request; returns the socket for its answers.
  Result<UniqueFd> send(const Request& request, const std::vector<int>& fds);
  struct Reply {
    Done done;
    std::vector<UniqueFd> fds;
  };
  Result<Reply> call(const Request& request, const std::vector<int>& fds);
  Result<Started> try_boot(const BootRequest& request, const std::vector<int>& fds);
  std::chrono::steady_clock::time_point deadline() const {
    return std::chrono::steady_clock::now() + timeout_;
  }

  const std::string program_;
  const std::vector<std::string> dirs_;
  const std::chrono::milliseconds timeout_;
  const std::vector<network::RuleSet> rule_sets_;
  // The first that the kernel knows, as far as is known: trying another costs milliseconds.
  std::atomic<size_t> best_rule_set_ = 0;

  mutable std::mutex mutex_;
  UniqueFd socket_;
  pid_t pid_ = -1;
};

}  // namespace alcove::jail

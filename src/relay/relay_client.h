// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/types.h>

#include <chrono>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "network/egress_policy.h"
#include "relay/control_messages.h"
#include "relay/restart_pause.h"

namespace alcove::relay {

// The server's end of the relay. Finds the one that serves the data directory or starts it, starts
// it again when it has died or hangs, and then opens all sandboxes anew. Calls block. Thread-safe.
class RelayClient {
 public:
  struct Options {
    std::string program;  // `alcove-relay`
    std::string data_dir;
    // Name servers instead of the host's.
    std::vector<std::string> resolvers;
    // A relay that does not answer for so long is replaced.
    std::chrono::milliseconds timeout = std::chrono::seconds(10);
    // How often it is asked whether it still answers.
    std::chrono::milliseconds check_every = std::chrono::seconds(5);
  };
  using Netns = std::shared_ptr<const UniqueFd>;

  static Result<std::unique_ptr<RelayClient>> start(Options options);
  // The relay and its connections stay.
  ~RelayClient();
  RelayClient(const RelayClient&) = delete;
  RelayClient& operator=(const RelayClient&) = delete;

  // Lets the sandbox reach what the policy says. In two parts, so that the caller can do something
  // else meanwhile; what was begun is in force, and ended by close(), in any case.
  class Opening {
   private:
    friend class RelayClient;
    std::string id;
    UniqueFd answers;
    uint64_t generation = 0;
  };
  Opening begin_open(const SandboxId& id, network::EgressPolicy policy, Netns netns);
  // kResourceExhausted: the relay has no room for it, or there is none at the moment. It is tried
  // again now and then until it succeeds or close() is called.
  Result<void> finish_open(Opening opening);

  // Ends the sandbox's connections; nothing leaves it any more.
  void close(const SandboxId& id);
  // Closes what an earlier server had opened and is no more: neither named here nor opened by this
  // one.
  Result<void> keep_only(const std::vector<SandboxId>& ids);

  // Ends the relay.
  Result<void> stop();

  // The process that serves now.
  pid_t pid() const;

 private:
  struct Known {
    network::EgressPolicy policy;
    Netns netns;
  };

  explicit RelayClient(Options options);

  // Those need mutex_.
  // Without success there is no connection: whoever comes next begins anew, after the pause.
  Result<void> connect();
  Result<void> try_connect();
  Result<void> greet();
  Result<void> open_all();
  Result<void> spawn();
  void end_child();

  // Takes the relay for dead if it is still the one that did not answer.
  void give_up(uint64_t generation, const Error& error);

  Result<UniqueFd> send(const Request& request, const std::vector<int>& fds);
  Result<Answer> receive(const UniqueFd& answers) const;
  // Sends and waits for the answer, on a new relay if the old one fails.
  Result<Answer> call(const Request& request, const std::vector<int>& fds);
  // Returns when there is a connection, the moment for the next try has come, or it is too late.
  void wait_for_turn(std::unique_lock<std::mutex>& lock,
                     std::chrono::steady_clock::time_point deadline);
  // What the relay said about a sandbox; one that it could not open is kept for open_again().
  Result<void> take_note(const std::string& id, const Answer& answer);
  void open_again();
  bool knows(const std::string& id) const;
  void watch();
  bool answers_still();

  const Options options_;
  UniqueFd wake_;  // an eventfd for the watcher

  mutable std::mutex mutex_;
  std::condition_variable connected_;
  RestartPause pause_;
  UniqueFd socket_;
  uint64_t generation_ = 0;  // counts connections
  pid_t child_ = -1;         // a relay that this process has started
  std::map<std::string, Known> known_;
  std::set<std::string> unopened_;  // of these, what the relay could not open
  bool stopping_ = false;
  std::thread watcher_;
};

}  // namespace alcove::relay

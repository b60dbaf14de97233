// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <deque>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/process.h"
#include "agent/process_journal.h"
#include "agent/process_messages.h"
#include "agent/reaper.h"
#include "agent/spawn.h"
#include "base/result.h"
#include "net/blocking_pool.h"
#include "net/task.h"

namespace alcove::agent {

// The commands that run, and for a short time how those ended that are over. Belongs to one loop.
class ProcessTable {
 public:
  // How long after its end a process can still be connected to (protocol/envd.md 2A.6).
  static constexpr std::chrono::seconds kRetention{30};

  // `reaper` and `pool` (for spawning) outlive the table.
  ProcessTable(const boost::asio::any_io_executor& executor, ChildReaper& reaper,
               net::BlockingPool& pool);

  // Starts a process. It does not read its outputs yet: the caller subscribes, then calls run().
  Task<Result<std::shared_ptr<Process>>> start(ProcessConfig config, std::optional<std::string> tag,
                                               SpawnSpec spec);
  // Lets a started process go on; it is listed until it is over.
  void run(const std::shared_ptr<Process>& process);

  // kNotFound; kUnimplemented for an empty selector.
  Result<std::shared_ptr<Process>> find(const ProcessSelector& selector) const;

  // A process that is over, the latest of several. A live one with the same pid or tag is meant
  // before it.
  struct Ended {
    uint32_t pid = 0;
    EndEvent end;
  };
  std::optional<Ended> find_ended(const ProcessSelector& selector) const;

  std::vector<ProcessInfo> list() const;
  size_t size() const { return live_.size(); }
  const ProcessJournal& journal() const { return journal_; }

 private:
  bool has_young_process() const;
  // On this thread, if nothing that may hang is in the way; else on one of the pool.
  Task<Result<Spawned>> spawn_somewhere(SpawnSpec spec);
  struct Retained {
    uint32_t pid;
    int wait_status;
    std::optional<std::string> tag;
    std::chrono::steady_clock::time_point until;
  };

  void ended(Process& process);
  void evict();
  void arm_timer();

  boost::asio::any_io_executor executor_;
  ChildReaper& reaper_;
  net::BlockingPool& pool_;
  std::list<std::shared_ptr<Process>> live_;
  std::deque<Retained> retained_;
  ProcessJournal journal_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
};

}  // namespace alcove::agent

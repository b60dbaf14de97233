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

// Threads for starts, which exist only while there is work; apart, because programs and directories
// on file systems that hang take threads away for good.
struct SpawnPools {
  net::BlockingPool root{"spawn", /*max_threads=*/8, /*max_queued=*/4096, /*spare_threads=*/16};
  net::BlockingPool mounts{"mounted spawn", /*max_threads=*/8, /*max_queued=*/256,
                           /*spare_threads=*/120};
};

// The commands that run, and for a short time how those ended that are over. Belongs to one loop.
class ProcessTable {
 public:
  // How long after its end a process can still be connected to (protocol/envd.md 2A.6).
  static constexpr std::chrono::seconds kRetention{30};

  // `reaper` and `pools` outlive the table.
  ProcessTable(const boost::asio::any_io_executor& executor, ChildReaper& reaper,
               SpawnPools& pools);

  // A process that is asked for.
  struct Wanted {
    ProcessConfig config;
    std::optional<std::string> tag;
    SpawnSpec spec;
    std::optional<Process::TimePoint> deadline;
  };
  // Starts a process, if nothing that may hang is in the way; else nothing was done and there is
  // none. It does not read its outputs yet: the caller subscribes, then calls run().
  Task<Result<std::shared_ptr<Process>>> start_near(std::shared_ptr<Wanted> wanted);
  // The same wherever it lies. If the caller is canceled before, the process runs without it.
  Task<Result<std::shared_ptr<Process>>> start_anywhere(std::shared_ptr<Wanted> wanted);
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
  std::shared_ptr<Process> add(Wanted& wanted, Spawned spawned);
  // A start that may outlive who asked for it.
  struct SlowStart;
  Task<void> start_slowly(std::shared_ptr<Wanted> wanted, std::shared_ptr<SlowStart> start);
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
  SpawnPools& pools_;
  std::list<std::shared_ptr<Process>> live_;
  std::deque<Retained> retained_;
  ProcessJournal journal_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
};

}  // namespace alcove::agent

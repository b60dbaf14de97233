// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

#include "agent/file_pools.h"
#include "agent/filesystem_messages.h"
#include "agent/users.h"
#include "base/result.h"
#include "connect/connect.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::agent {

// Answers WatchDir with events until the client leaves, the deadline passes or the watch fails. A
// slow client makes the kernel's queue overflow in the end, which is a failure.
Task<void> stream_watch(http::Exchange& exchange, connect::CallInfo call, FilePools& pools,
                        WatchRequest request, std::shared_ptr<const Accounts> accounts);

// The watchers of clients that poll (CreateWatcher and its companions). Belongs to one loop.
class PolledWatchers {
 public:
  struct Limits {
    size_t watchers = 256;
    // About so many events wait to be fetched; more wait in the kernel, whose queue overflows in
    // the end, which fails the watcher.
    size_t events = 65'536;
    // A watcher that nobody asks for so long is removed.
    std::chrono::steady_clock::duration idle = std::chrono::minutes(30);
  };

  PolledWatchers(const boost::asio::any_io_executor& executor, FilePools& pools)
      : PolledWatchers(executor, pools, Limits()) {}
  PolledWatchers(const boost::asio::any_io_executor& executor, FilePools& pools, Limits limits);
  ~PolledWatchers();

  // Returns the id.
  Task<Result<std::string>> create(WatchRequest request, std::shared_ptr<const Accounts> accounts);
  // What came since the last call, up to what was done before this one, unless that is more than
  // may wait. A call that is canceled leaves it to the next one. kNotFound; kInternal after a
  // failure of the watch.
  Task<Result<std::vector<FilesystemEvent>>> take(std::string id);
  Result<void> remove(const std::string& id);

  size_t size() const { return watchers_.size(); }

 private:
  struct Watcher;
  static Task<void> collect(std::shared_ptr<Watcher> watcher);
  // Takes what is there until all who asked are answered.
  static Task<void> drain(std::shared_ptr<Watcher> watcher);
  // Takes what the kernel has; true if that was something.
  static Task<bool> add_events(Watcher& watcher);
  Result<std::shared_ptr<Watcher>> find(const std::string& id);
  void remove_idle();
  void arm_timer();

  boost::asio::any_io_executor executor_;
  FilePools& pools_;
  const Limits limits_;
  std::map<std::string, std::shared_ptr<Watcher>> watchers_;
  boost::asio::steady_timer timer_;
  bool timer_armed_ = false;
};

}  // namespace alcove::agent

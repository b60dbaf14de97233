// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>

namespace alcove::agent {

// Gives memory back when the agent has been quiet for a while: free heap pages, and the mapping of
// program pages that only start-up or the last requests needed. An idle agent has no timer running.
class MemorySaver {
 public:
  MemorySaver(const boost::asio::any_io_executor& executor,
              std::chrono::steady_clock::duration quiet_time);

  // Something happens: look again later.
  void touch();

 private:
  void arm();

  boost::asio::steady_timer timer_;
  std::chrono::steady_clock::duration quiet_time_;
  std::chrono::steady_clock::time_point last_touch_;
  bool armed_ = false;
};

// What it does; also of use by itself.
void give_memory_back();

}  // namespace alcove::agent

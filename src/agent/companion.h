// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <boost/asio/any_io_executor.hpp>

#include "agent/reaper.h"
#include "base/unique_fd.h"
#include "net/task.h"

namespace alcove::agent {

// A server of the sandbox that the agent keeps running, as root: the code interpreter. The
// listening socket is the agent's, so clients that come while it is started again just wait.
class Companion {
 public:
  // `program` gets the socket as fd 3 and the arguments "--listen-fd 3".
  Companion(const boost::asio::any_io_executor& executor, ChildReaper& reaper, std::string program,
            UniqueFd listener);

  // Starts it; later calls only change the environment of its next start.
  void start(std::vector<std::string> environment);

 private:
  struct State;
  static void launch(std::shared_ptr<State> state);
  static Task<void> launch_later(std::shared_ptr<State> state);

  // Shared with the reaper's callback and the task that starts it again.
  std::shared_ptr<State> state_;
};

}  // namespace alcove::agent

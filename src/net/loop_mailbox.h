// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include <boost/asio/any_io_executor.hpp>

namespace alcove::net {

// The way for other threads to reach a loop that may be destroyed by then.
class LoopMailbox {
 public:
  // The mailbox of the loop behind `executor`; to be called on that loop.
  static std::shared_ptr<LoopMailbox> of(const boost::asio::any_io_executor& executor);

  // Runs `message` on the loop; drops it if the loop is gone. Any thread.
  void post(std::function<void()> message);
  // Nothing is delivered any more. Called when the loop is destroyed.
  void close();

  explicit LoopMailbox(boost::asio::any_io_executor executor);

 private:
  std::mutex mutex_;
  bool open_ = true;
  boost::asio::any_io_executor executor_;
};

}  // namespace alcove::net

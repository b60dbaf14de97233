// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <deque>
#include <optional>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "interpreter/kernel.h"
#include "net/notifier.h"

namespace alcove::interpreter {

// The lines of one execution between the kernel that makes them and the client that takes them.
// Belongs to one loop; shared by the run and the request's handler.
class RunStream final : public EventSink {
 public:
  explicit RunStream(const boost::asio::any_io_executor& executor) : changed_(executor) {}

  Task<void> emit(RunEvent event) override;
  // Nothing follows.
  void close();
  // The client is gone: what comes is dropped.
  void leave();
  bool left() const { return left_; }
  // The run is being ended by force: the rest, which is bounded, is kept for a client however slow.
  void hurry();
  // Whether anything was emitted, taken or not.
  bool used() const { return used_; }

  // The next line; nothing at the end. A keepalive after a while without one.
  Task<std::optional<std::string>> next();

 private:
  net::Notifier changed_;
  std::deque<std::string> lines_;
  size_t size_ = 0;
  bool used_ = false;
  bool closed_ = false;
  bool left_ = false;
  bool hurried_ = false;
};

}  // namespace alcove::interpreter

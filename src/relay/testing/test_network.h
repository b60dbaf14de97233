// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "network/ip_address.h"

namespace alcove::relay::testing {

// A network namespace of the test. It lasts as long as the object and sockets in it.
class TestNamespace {
 public:
  TestNamespace();

  int fd() const { return fd_->get(); }
  std::shared_ptr<const UniqueFd> shared() const { return fd_; }
  // Runs the function on a thread of its own inside.
  void run(const std::function<void()>& body) const;
  // Runs a shell command inside; the test fails if it fails.
  void shell(const std::string& command) const;
  std::string output_of(const std::string& command) const;

 private:
  std::shared_ptr<const UniqueFd> fd_;
};

// Three networks: "host", where the relay runs; "internet", behind a cable from the host, which
// owns the documentation ranges; and "guest", prepared as a sandbox's.
//
//   192.0.2.1, 2001:db8::1          the host's own
//   192.0.2.2, 2001:db8::2          the internet's end of the cable
//   198.51.100.0/24, 2001:db8:1::7  all of these answer in "internet"
//   203.0.113.0/25                  swallowed silently on the way
//   203.0.113.128/25                the host has no way to it
class TestNetwork {
 public:
  TestNetwork();

  TestNamespace host;
  TestNamespace internet;
  TestNamespace guest;
};

// Prepares the calling thread's network namespace as the jail's launcher does.
enum class Queue { kBest, kNone };
void prepare_guest_network(Queue queue = Queue::kBest);

network::Endpoint endpoint(const std::string& address, uint16_t port);

// Blocking sockets with a timeout of a few seconds for every operation.
UniqueFd listen_in(const TestNamespace& where, const network::Endpoint& at);
UniqueFd bind_datagrams_in(const TestNamespace& where, const network::Endpoint& at);
UniqueFd accept_from(const UniqueFd& listener);

struct Attempt {
  UniqueFd fd;
  int error = 0;  // of connect(); ETIMEDOUT if it is still waiting at the end of its time
  std::chrono::milliseconds took{};
};
Attempt connect_in(const TestNamespace& where, const network::Endpoint& to,
                   std::chrono::milliseconds patience = std::chrono::seconds(5));
UniqueFd datagrams_in(const TestNamespace& where, const network::Endpoint& to);

bool send_text(const UniqueFd& fd, std::string_view text);
// Up to `size` bytes, or until the end. "(error <errno>)" is appended when it fails.
std::string receive_text(const UniqueFd& fd, size_t size);

}  // namespace alcove::relay::testing

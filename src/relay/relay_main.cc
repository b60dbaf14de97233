// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// alcove-relay <data dir>: fd 3 gets one message when the relay serves, or why it does not.
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/close_range.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "base/log.h"
#include "base/strings.h"
#include "relay/control_messages.h"
#include "relay/relay.h"
#include "relay/relay_socket.h"
#include "sys/capabilities.h"
#include "sys/file_io.h"
#include "sys/message.h"

namespace alcove::relay {
namespace {

constexpr int kReadySocket = 3;

size_t raise_descriptor_limit() {
  rlimit limit{};
  ::getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

// Where its few log lines go; without such a directory, nowhere.
void use_log_file(const std::string& data_dir) {
  const auto log = sys::open_file(data_dir + "/log/relay.log", O_WRONLY | O_CREAT | O_APPEND, 0644);
  if (log) ::dup2(log->get(), STDERR_FILENO);
}

// A relay that is about to end may still hold the lock.
Result<UniqueFd> lock_patiently(const std::string& data_dir) {
  constexpr int kTries = 200;
  for (int i = 0;; ++i) {
    auto lock = lock_relay(data_dir);
    if (lock || lock.error().code() != Code::kFailedPrecondition || i == kTries) return lock;
    ::usleep(10'000);
  }
}

// Only returns by a failure before it serves.
Result<void> run(const std::string& data_dir) {
  ::umask(077);
  ::signal(SIGPIPE, SIG_IGN);
  use_log_file(data_dir);
  ALCOVE_TRY_ASSIGN(const UniqueFd lock, lock_patiently(data_dir));
  ALCOVE_TRY_ASSIGN(UniqueFd listener, listen_for_servers(data_dir));
  if (::chdir("/") != 0) return fail_errno(errno, "chdir /");
  const size_t descriptors = raise_descriptor_limit();
  // To enter sandboxes' networks; to take their packets; to speak as any address and port there.
  ALCOVE_TRY(sys::keep_only_capabilities(
      {CAP_SYS_ADMIN, CAP_NET_ADMIN, CAP_NET_RAW, CAP_NET_BIND_SERVICE}));
  boost::asio::io_context loop(/*concurrency_hint=*/1);
  ALCOVE_TRY_ASSIGN(const auto relay, Relay::create(loop, {.descriptors = descriptors}));
  relay->serve(std::move(listener));
  (void)sys::send_message(kReadySocket, encode(Answer(Done{})), {});
  ::close(kReadySocket);
  loop.run();
  // Asked to end. The kernel closes everything; tasks need not be unwound one by one.
  ::_exit(0);
}

}  // namespace
}  // namespace alcove::relay

int main(int argc, char** argv) {
  using namespace alcove::relay;
  if (argc != 2) return 2;
  ::close_range(kReadySocket + 1, ~0U, 0);
  const auto result = run(argv[1]);
  alcove::log_error(result.error().message());
  (void)alcove::sys::send_message(kReadySocket, encode(Answer(Failed{result.error().message()})),
                                  {});
  return 1;
}

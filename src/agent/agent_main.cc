// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// alcove-agent: pid 1 of a sandbox, in any Linux root.

#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>

#include "agent/agent.h"
#include "agent/init_message.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "base/strings.h"
#include "net/listener.h"

namespace alcove::agent {
namespace {

constexpr std::string_view kUsage =
    "alcove-agent: the daemon inside a sandbox\n"
    "  --listen-fd N   serve on this listening socket\n"
    "  --port N        listen on all addresses (default 49983)\n"
    "  --address A     listen on this address instead (default 0.0.0.0)\n"
    "  --interpreter P keep this program running as the code interpreter, on port 49999\n"
    "  --version       print the protocol's version\n";
constexpr uint16_t kDefaultPort = 49983;
constexpr uint16_t kInterpreterPort = 49999;

struct Flags {
  std::optional<int> listen_fd;
  uint16_t port = kDefaultPort;
  std::string address = "0.0.0.0";
  std::string interpreter;
};

void print(int fd, std::string_view text) { (void)!::write(fd, text.data(), text.size()); }

// Nothing for a command line that cannot be understood.
std::optional<Flags> parse_flags(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string_view value = argv[i + 1];
    if (name == "--listen-fd") {
      flags.listen_fd = parse_number<int>(value);
      if (!flags.listen_fd || *flags.listen_fd < 0) return {};
    } else if (name == "--port") {
      const auto port = parse_number<uint16_t>(value);
      if (!port) return {};
      flags.port = *port;
    } else if (name == "--address") {
      flags.address = value;
    } else if (name == "--interpreter") {
      flags.interpreter = value;
    } else {
      return {};
    }
  }
  if (argc % 2 == 0) return {};
  return flags;
}

// What the launcher left may be anything; commands must find the usual.
void set_up_process() {
  ::umask(022);
  // So that pipes of commands never get the numbers of the standard streams.
  int null_fd = ::open("/dev/null", O_RDWR);
  while (null_fd >= 0 && null_fd <= 2) null_fd = ::dup(null_fd);
  if (null_fd > 2) ::close(null_fd);
  // A sanitizer reports crashes by handlers of its own, which stay.
  for (int number = 1; number < NSIG && !kSanitized; ++number) ::signal(number, SIG_DFL);
  ::signal(SIGPIPE, SIG_IGN);
  sigset_t mask;
  ::sigemptyset(&mask);
  ::sigaddset(&mask, SIGCHLD);
  ::sigprocmask(SIG_SETMASK, &mask, nullptr);
  // Small and returned soon: hundreds of idle agents share a machine.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_TRIM_THRESHOLD, 64 * 1024);
  ::mallopt(M_TOP_PAD, 16 * 1024);
  ::mallopt(M_MMAP_THRESHOLD, 1024 * 1024);
}

Result<UniqueFd> open_listener(const Flags& flags) {
  if (flags.listen_fd) {
    (void)::fcntl(*flags.listen_fd, F_SETFD, FD_CLOEXEC);
    return UniqueFd(*flags.listen_fd);
  }
  return net::make_listener(flags.address, flags.port);
}

Result<void> run(const Flags& flags) {
  set_up_process();
  ALCOVE_TRY_ASSIGN(UniqueFd listener, open_listener(flags));
  AgentOptions options;
  if (const char* path = ::getenv("PATH")) options.path_variable = path;
  boost::asio::io_context loop(/*concurrency_hint=*/1);
  ALCOVE_TRY_ASSIGN(const auto agent, Agent::create(loop, std::move(options)));
  if (!flags.interpreter.empty()) {
    // Listens before anybody knows of the sandbox: the first request waits, it is not refused.
    ALCOVE_TRY_ASSIGN(UniqueFd socket, net::make_listener("0.0.0.0", kInterpreterPort));
    agent->keep_interpreter(flags.interpreter, std::move(socket));
  }
  ALCOVE_TRY(agent->serve(std::move(listener)));
  loop.run();
  return fail(Code::kInternal, "the loop has ended");
}

}  // namespace
}  // namespace alcove::agent

int main(int argc, char** argv) {
  using namespace alcove::agent;
  if (argc == 2 && std::string_view(argv[1]) == "--version") {
    print(1, alcove::cat(kEnvdVersion, "\n"));
    return 0;
  }
  const auto flags = parse_flags(argc, argv);
  if (!flags) {
    print(2, kUsage);
    return 2;
  }
  // The launcher starts it as /run/alcove/agent; ps and top should say whose agent it is.
  ::prctl(PR_SET_NAME, "alcove-agent");
  const auto result = run(*flags);
  alcove::log_error(result.error().message());
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/relay_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/strings.h"
#include "relay/control_messages.h"
#include "sys/message.h"

extern char** environ;

namespace alcove::relay {
namespace {

Result<pid_t> spawn(const std::string& program, const std::string& data_dir, int ready_socket) {
  constexpr int kReadySocket = 3;
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, ready_socket, kReadySocket);
  // Whoever reads the server's output must not wait for the relay's end.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_addopen(&actions, standard, "/dev/null", O_RDWR, 0);
  }
  sigset_t all;
  sigset_t none;
  sigfillset(&all);
  sigemptyset(&none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  char* const argv[] = {const_cast<char*>(program.c_str()), const_cast<char*>(data_dir.c_str()),
                        nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv, environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return fail_errno(error, cat("start ", program));
  return pid;
}

}  // namespace

Result<pid_t> start_relay(const std::string& program, const std::string& data_dir,
                          std::chrono::milliseconds timeout) {
  ALCOVE_TRY_ASSIGN(auto pair, sys::make_message_pair());
  ALCOVE_TRY_ASSIGN(const pid_t pid, spawn(program, data_dir, pair.second.get()));
  pair.second.reset();
  auto ready = [&]() -> Result<void> {
    ALCOVE_TRY_ASSIGN(
        const auto message,
        sys::receive_message(pair.first.get(), std::chrono::steady_clock::now() + timeout));
    ALCOVE_TRY_ASSIGN(const Answer answer, decode_answer(message.bytes));
    if (const auto* failed = std::get_if<Failed>(&answer)) {
      return fail(Code::kInternal, failed->message);
    }
    return {};
  }();
  if (ready) return pid;
  ::kill(pid, SIGKILL);
  ::waitpid(pid, nullptr, 0);
  return fail(std::move(ready).error().context(cat("start ", program)));
}

}  // namespace alcove::relay

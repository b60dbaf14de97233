// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "relay/relay_process.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "base/sanitized.h"
#include "base/strings.h"
#include "relay/control_messages.h"
#include "sys/helper_program.h"
#include "sys/message.h"

namespace alcove::relay {
Result<pid_t> start_relay(const std::string& program, const std::string& data_dir,
                          std::chrono::milliseconds timeout) {
  ALCOVE_TRY_ASSIGN(auto pair, sys::make_message_pair());
  // Whoever reads the server's output must not wait for the relay's end.
  constexpr auto kOutput =
      kSanitized ? sys::HelperProgram::Output::kInherited : sys::HelperProgram::Output::kNone;
  ALCOVE_TRY_ASSIGN(const pid_t pid, sys::start_helper({.path = program,
                                                        .arguments = {data_dir},
                                                        .socket = pair.second.get(),
                                                        .output = kOutput}));
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

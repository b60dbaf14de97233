// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/companion.h"

#include <chrono>
#include <utility>

#include "agent/start_program.h"
#include "base/log.h"
#include "base/sanitized.h"
#include "net/event_loops.h"
#include "net/timer.h"

namespace alcove::agent {
namespace {

// Back soon, and a program that cannot run takes no whole core.
constexpr std::chrono::milliseconds kPause{100};
constexpr int kStandardError = kSanitized ? 2 : -1;

}  // namespace

struct Companion::State {
  boost::asio::any_io_executor executor;
  ChildReaper& reaper;
  std::string program;
  UniqueFd listener;
  std::vector<std::string> environment;
  bool started = false;
};

Companion::Companion(const boost::asio::any_io_executor& executor, ChildReaper& reaper,
                     std::string program, UniqueFd listener)
    : state_(std::make_shared<State>(
          State{executor, reaper, std::move(program), std::move(listener), {}, false})) {}

void Companion::start(std::vector<std::string> environment) {
  state_->environment = std::move(environment);
  if (std::exchange(state_->started, true)) return;
  launch(state_);
}

void Companion::launch(std::shared_ptr<State> state) {
  const auto pid = start_program({.argv = {state->program, "--listen-fd", "3"},
                                  .environment = state->environment,
                                  .fds = {-1, -1, kStandardError, state->listener.get()}});
  if (!pid) {
    log_error(pid.error().message());
    net::spawn(state->executor, launch_later(state));
    return;
  }
  state->reaper.watch(*pid, [state](int) { net::spawn(state->executor, launch_later(state)); });
}

Task<void> Companion::launch_later(std::shared_ptr<State> state) {
  co_await net::sleep_for(kPause);
  launch(state);
}

}  // namespace alcove::agent

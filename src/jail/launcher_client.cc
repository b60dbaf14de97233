// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/launcher_client.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include "base/strings.h"
#include "network/rule_sets.h"
#include "sys/helper_program.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

// A request that the launcher took with it when it died is asked again: nobody works on it, or its
// answer's socket would be open.
template <typename Attempt>
auto retry_if_unavailable(Attempt attempt) {
  auto result = attempt();
  for (int i = 0; i < 2 && !result && result.error().code() == Code::kUnavailable; ++i) {
    result = attempt();
  }
  return result;
}

bool is_dead_peer(const Error& error) {
  return error.error_number() == EPIPE || error.error_number() == ECONNRESET ||
         error.error_number() == EBADF;
}

}  // namespace

LauncherClient::LauncherClient(std::string program, std::vector<std::string> dirs,
                               std::chrono::milliseconds timeout)
    : program_(std::move(program)),
      dirs_(std::move(dirs)),
      timeout_(timeout),
      rule_sets_(network::make_rule_sets()) {}

LauncherClient::~LauncherClient() {
  const std::lock_guard guard(mutex_);
  stop_locked();
}

void LauncherClient::stop_locked() {
  socket_.reset();
  if (pid_ < 0) return;
  // It ends by itself when its socket closes; the signal is for one that hangs.
  const auto pidfd = sys::open_pidfd(pid_);
  if (pidfd && !sys::wait_by_pidfd(pidfd->get(), deadline())) sys::kill_by_pidfd(pidfd->get());
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

Result<void> LauncherClient::start() {
  const std::lock_guard guard(mutex_);
  return start_locked();
}

Result<void> LauncherClient::start_locked() {
  stop_locked();
  ALCOVE_TRY_ASSIGN(auto pair, sys::make_message_pair());
  ALCOVE_TRY_ASSIGN(
      pid_, sys::start_helper({.path = program_, .arguments = dirs_, .socket = pair.second.get()}));
  pair.second.reset();
  auto message = sys::receive_message(pair.first.get(), deadline());
  if (!message) {
    stop_locked();
    return fail(std::move(message).error().context(cat("start ", program_)));
  }
  ALCOVE_TRY_ASSIGN(const Answer answer, decode_answer(message->bytes));
  if (const auto* failure = std::get_if<StepFailed>(&answer)) {
    stop_locked();
    return fail(to_error(*failure));
  }
  socket_ = std::move(pair.first);
  return {};
}

pid_t LauncherClient::pid() const {
  const std::lock_guard guard(mutex_);
  return pid_;
}

Result<UniqueFd> LauncherClient::send(const Request& request, const std::vector<int>& fds) {
  ALCOVE_TRY_ASSIGN(auto pair, sys::make_message_pair());
  std::vector<int> all = {pair.second.get()};
  all.insert(all.end(), fds.begin(), fds.end());
  const std::string bytes = encode(request);
  const std::lock_guard guard(mutex_);
  auto sent = sys::send_message(socket_.get(), bytes, all);
  if (!sent && is_dead_peer(sent.error())) {
    ALCOVE_TRY(start_locked());
    sent = sys::send_message(socket_.get(), bytes, all);
  }
  if (!sent) return fail(std::move(sent).error().context("ask the launcher"));
  return std::move(pair.first);
}

Result<LauncherClient::Reply> LauncherClient::call(const Request& request,
                                                   const std::vector<int>& fds) {
  return retry_if_unavailable([&]() -> Result<Reply> {
    ALCOVE_TRY_ASSIGN(const UniqueFd answers, send(request, fds));
    ALCOVE_TRY_ASSIGN(auto message, sys::receive_message(answers.get(), deadline()));
    ALCOVE_TRY_ASSIGN(const Answer answer, decode_answer(message.bytes));
    if (const auto* failure = std::get_if<StepFailed>(&answer)) return fail(to_error(*failure));
    const auto* done = std::get_if<Done>(&answer);
    if (done == nullptr) return fail(Code::kInternal, "unexpected answer of the launcher");
    return Reply{*done, std::move(message.fds)};
  });
}

Result<UniqueFd> LauncherClient::make_template_namespace(uint32_t block) {
  ALCOVE_TRY_ASSIGN(Reply reply, call(TemplateNamespaceRequest{block}, {}));
  if (reply.fds.size() != 1) return fail(Code::kInternal, "launcher sent no namespace");
  return std::move(reply.fds[0]);
}

Result<std::vector<network::NamespacePair>> LauncherClient::make_pairs(
    int template_ns, const std::vector<network::IdRange>& ranges) {
  std::vector<network::NamespacePair> pairs;
  for (size_t done = 0; done < ranges.size();) {
    const size_t count = std::min(ranges.size() - done, kMaxPairsPerRequest);
    PairsRequest request;
    const size_t best = best_rule_set_;
    request.rule_sets.assign(rule_sets_.begin() + static_cast<ptrdiff_t>(best), rule_sets_.end());
    for (size_t i = 0; i < count; ++i) request.ranges.push_back(ranges[done + i]);
    ALCOVE_TRY_ASSIGN(Reply reply, call(request, {template_ns}));
    best_rule_set_ = std::min<size_t>(best + reply.done.rule_set, rule_sets_.size() - 1);
    std::vector<UniqueFd>& fds = reply.fds;
    if (fds.size() != 2 * count) return fail(Code::kInternal, "launcher sent too few namespaces");
    for (size_t i = 0; i < count; ++i) {
      pairs.push_back({ranges[done + i], std::move(fds[2 * i]), std::move(fds[2 * i + 1])});
    }
    done += count;
  }
  return pairs;
}

Result<LauncherClient::Started> LauncherClient::boot(const BootRequest& request,
                                                     const std::vector<int>& fds) {
  return retry_if_unavailable([&] { return try_boot(request, fds); });
}

Result<LauncherClient::Started> LauncherClient::try_boot(const BootRequest& request,
                                                         const std::vector<int>& fds) {
  ALCOVE_TRY_ASSIGN(const UniqueFd answers, send(request, fds));
  const auto until = deadline();
  Started started;
  std::optional<Error> error;
  // Both processes that build the sandbox hold the other end; it closes when the agent runs.
  for (;;) {
    auto message = sys::receive_message(answers.get(), until);
    if (!message) {
      if (message.error().code() != Code::kUnavailable) error = std::move(message).error();
      break;
    }
    const auto answer = decode_answer(message->bytes);
    if (!answer) {
      error = answer.error();
      break;
    }
    if (const auto* failure = std::get_if<StepFailed>(&*answer)) error = to_error(*failure);
    if (const auto* process = std::get_if<ProcessStarted>(&*answer)) {
      started.pid = process->pid;
      if (!message->fds.empty()) started.pidfd = std::move(message->fds[0]);
    }
  }
  if (!error && !started.pidfd.valid()) {
    error = Error(Code::kUnavailable, "the launcher died");
  }
  if (!error) return started;
  if (started.pidfd.valid()) {
    sys::kill_by_pidfd(started.pidfd.get());
    (void)sys::wait_by_pidfd(started.pidfd.get(), deadline());
  }
  return fail(std::move(*error));
}

}  // namespace alcove::jail

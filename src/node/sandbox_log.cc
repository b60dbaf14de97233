// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What the node does about logs: put together, keep, find again, throw away.
#include "node/sandbox_log.h"

#include <algorithm>
#include <map>
#include <utility>

#include "agent/client.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/tcp_stream.h"
#include "node/local_node.h"

namespace alcove::node {
namespace {

using namespace std::chrono_literals;

constexpr uint16_t kAgentPort = 49983;
constexpr std::chrono::milliseconds kFetchOnRequest = 2s;
constexpr size_t kFetchedAtOnce = 64;
// What is kept of ended sandboxes: for how long, how much of each and of all.
constexpr std::chrono::hours kKept = 7 * 24h;
constexpr size_t kMaxLogBytes = 256u << 10;
constexpr uint64_t kMaxBytesOfAll = 256ull << 20;
constexpr std::chrono::minutes kTidyEvery{1};

Task<Result<std::vector<agent::JournalLine>>> ask_agent(std::shared_ptr<RunningSandbox> sandbox,
                                                        std::string control_token,
                                                        std::chrono::milliseconds limit) {
  ALCOVE_CO_TRY_ASSIGN(UniqueFd socket,
                       sandbox->connect(kAgentPort, sandbox::Machine::Family::kV4));
  const auto begin = std::chrono::steady_clock::now();
  ALCOVE_CO_TRY_ASSIGN(auto stream, co_await net::finish_connect(std::move(socket), limit));
  const auto used =
      std::chrono::ceil<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  http::ClientConnection connection(std::move(stream));
  co_return co_await agent::read_journal(connection, std::move(control_token), limit - used);
}

}  // namespace

Log whole_log(const RunningSandbox& sandbox, Log process_lines) {
  // Keeps the order of lines that have the same time.
  std::multimap<WallTime, LogEntry> sorted;
  const auto add = [&sorted](LogEntry entry) { sorted.emplace(entry.time, std::move(entry)); };
  add(created_line(sandbox.record()));
  Log notes = sandbox.notes();
  for (LogEntry& entry : notes) add(std::move(entry));
  for (LogEntry& entry : process_lines) add(std::move(entry));
  Log log;
  log.reserve(sorted.size());
  for (auto& [time, entry] : sorted) log.push_back(std::move(entry));
  return log;
}

Task<Log> LocalNode::fetch_process_lines(SandboxPtr sandbox,
                                         std::chrono::milliseconds limit) const {
  const SandboxId& id = sandbox->record().id;
  const auto lines = co_await ask_agent(sandbox, deps_.tokens.control_token(id), limit);
  Log log;
  if (!lines) {
    // Also what an agent of an earlier version says, which keeps no journal.
    log_debug(cat(id.str(), ": no lines about processes: ", lines.error().message()));
    co_return log;
  }
  log.reserve(lines->size());
  const WallTime earliest = sandbox->record().started_at;
  const WallTime latest = std::max(deps_.clock.now(), earliest);
  for (agent::JournalLine line : *lines) {
    // Its clock is ours, but whoever answers may say anything.
    line.time = std::clamp(line.time, earliest, latest);
    log.push_back(process_line(line));
  }
  co_return log;
}

std::vector<Log> LocalNode::fetch_all_process_lines(
    const std::vector<SandboxPtr>& sandboxes) const {
  std::vector<Log> logs(sandboxes.size());
  for (size_t next = 0; next < sandboxes.size();) {
    boost::asio::io_context loop(/*concurrency_hint=*/1);
    for (size_t i = 0; i < kFetchedAtOnce && next < sandboxes.size(); ++i, ++next) {
      net::spawn(loop, [](const LocalNode* self, SandboxPtr sandbox, Log& log) -> Task<void> {
        log = co_await self->fetch_process_lines(std::move(sandbox), kFetchBeforeEnd);
      }(this, sandboxes[next], logs[next]));
    }
    loop.run();
  }
  return logs;
}

Task<Result<std::optional<Log>>> LocalNode::read_log(SandboxId id, TeamId team) {
  if (const SandboxPtr sandbox = find_running(id)) {
    if (sandbox->record().team != team) co_return std::optional<Log>();
    Log processes = co_await fetch_process_lines(sandbox, kFetchOnRequest);
    co_return whole_log(*sandbox, std::move(processes));
  }
  (void)co_await wait_while_ending(id);
  ALCOVE_CO_TRY_ASSIGN(
      const std::optional<store::EndedSandbox> ended,
      co_await deps_.store_pool.run([this, id] { return deps_.store.find_ended_sandbox(id); }));
  if (!ended || ended->team != team || ended->ended_at < deps_.clock.now() - kKept) {
    co_return std::optional<Log>();
  }
  ALCOVE_CO_TRY_ASSIGN(Log log, decode_log(ended->log));
  co_return log;
}

Result<void> LocalNode::store_end(const store::Sandbox& record, const Log& log) {
  const WallTime now = deps_.clock.now();
  store::EndedSandbox ended{
      .id = record.id, .team = record.team, .ended_at = now, .log = encode_log(log, kMaxLogBytes)};
  if (auto stored = deps_.store.end_sandbox(ended); !stored) {
    // A disk without room for a log may have room for an end.
    log_warn(cat("keep the log of ", record.id.str(), ": ", stored.error().message()));
    ended.log = encode_log({}, 0);
    ALCOVE_TRY(deps_.store.end_sandbox(ended));
  }
  WallTime tidied_at = logs_tidied_at_.load();
  if (now < tidied_at + kTidyEvery || !logs_tidied_at_.compare_exchange_strong(tidied_at, now)) {
    return {};
  }
  auto tidy = [&store = deps_.store, before = now - kKept] {
    if (auto done = store.forget_ended_sandboxes(before, kMaxBytesOfAll); !done) {
      log_warn(cat("throw old logs away: ", done.error().message()));
    }
  };
  // Not before the answer to whoever waits for this end.
  if (!deps_.store_pool.submit(tidy)) tidy();
  return {};
}

}  // namespace alcove::node

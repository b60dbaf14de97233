// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What the node does with sandboxes of an earlier server: take over, or clear away.

#include <algorithm>
#include <optional>

#include "base/log.h"
#include "base/strings.h"
#include "net/event_loops.h"
#include "net/timer.h"
#include "node/local_node.h"
#include "node/sandbox_log.h"

namespace alcove::node {
namespace {

// A shortage that kept the start from taking a sandbox over may be gone soon.
constexpr std::chrono::seconds kTakeOverAgain{5};
// Between tries to clear away what an earlier server has left.
constexpr std::chrono::seconds kFirstClearPause{5};
constexpr std::chrono::seconds kLongestClearPause{60};
// How long a start waits for the ends of all that has expired, together.
constexpr std::chrono::milliseconds kEndsAtStart{1000};

}  // namespace

Result<void> LocalNode::adopt_existing() {
  ALCOVE_TRY_ASSIGN(std::vector<store::Sandbox> records, deps_.store.list_sandboxes());
  correct_for_clock(records);
  TakenOver taken_over = take_over(std::move(records));
  set_unclear(taken_over.unclear);
  std::set<SandboxId> keep;
  // An older interpreter needs no file: the sandboxes that have it mounted keep it.
  std::set<std::string> agents = {agent_hash_, interpreter_hash_};
  const auto keep_all_of = [&](const store::Sandbox& record) {
    keep.insert(record.id);
    agents.insert(record.agent_hash);
  };
  const std::vector<SandboxPtr> alive = running();
  for (const SandboxPtr& sandbox : alive) keep_all_of(sandbox->record());
  for (const store::Sandbox& record : taken_over.unclear) keep_all_of(record);
  keep.insert(taken_over.ending.begin(), taken_over.ending.end());

  // A process that does not end (a stuck disk) is no reason not to serve the others.
  Remains remains;
  if (auto swept = deps_.driver.sweep({keep.begin(), keep.end()}); !swept) {
    log_warn(cat("clear away an earlier server's sandboxes: ", swept.error().message()));
    remains.sweep = Sweep::kAgain;
  }
  if (const auto uppers = deps_.uppers.list()) {
    for (const SandboxId& id : *uppers) {
      if (keep.contains(id)) continue;
      if (auto removed = deps_.uppers.remove(id); !removed) {
        log_warn(cat("delete files of sandbox ", id.str(), ": ", removed.error().message()));
        remains.ids.push_back(id);
      }
    }
  } else {
    log_error(cat("an earlier server's files stay: ", uppers.error().message()));
  }
  if (auto kept = deps_.agents.keep_only(agents); !kept) {
    log_warn(cat("delete older agents: ", kept.error().message()));
  }
  if (!alive.empty()) log_info(cat("took over ", alive.size(), " running sandboxes"));
  if (!taken_over.unclear.empty()) net::spawn(deps_.loop, take_over_later());
  if (!remains.ids.empty() || remains.sweep == Sweep::kAgain) {
    net::spawn(deps_.loop, clear_remains_later(std::move(remains)));
  }
  net::spawn(deps_.loop, follow_clock());
  return {};
}

LocalNode::TakenOver LocalNode::take_over(std::vector<store::Sandbox> records) {
  TakenOver result;
  // The store did not take its end. It may keep everybody waiting for seconds, so the others' ends
  // are left for the next time, where they come first.
  std::optional<store::Sandbox> refused;
  std::vector<SandboxPtr> expired;
  const WallTime now = deps_.clock.now();
  for (store::Sandbox& record : records) {
    auto machine = deps_.driver.adopt(record.id, record.machine_record);
    if (!machine && machine.error().code() != Code::kNotFound) {
      log_error(cat(machine.error().message(), "; it is kept, and tried again"));
      result.unclear.push_back(std::move(record));
      continue;
    }
    if (!machine) {
      if (refused) {
        result.unclear.push_back(std::move(record));
        continue;
      }
      log_info(cat("not taken over: ", machine.error().message()));
      const Log log = {created_line(record), ended_line(now, Ending::kMissed)};
      if (auto stored = store_end(record, log); stored) {
        result.gone.push_back(record.id);
      } else {
        log_error(cat("forget sandbox ", record.id.str(), ": ", stored.error().message()));
        refused = std::move(record);
      }
      continue;
    }
    auto sandbox = std::make_shared<RunningSandbox>(
        std::move(record), deps_.driver.isolation_class(), std::move(*machine));
    if (sandbox->end_at() > now) {
      sandbox->note(taken_over_line(now));
      admit(std::move(sandbox));
    } else {
      log_info(cat("sandbox ", sandbox->record().id.str(), " expired while the server was down"));
      expired.push_back(std::move(sandbox));
    }
  }
  for (store::Sandbox& record : end_outside(expired, Ending::kTimeout)) {
    result.unclear.push_back(std::move(record));
  }
  if (refused) result.unclear.push_back(*std::move(refused));
  const auto deadline = std::chrono::steady_clock::now() + kEndsAtStart;
  for (const SandboxPtr& sandbox : expired) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (has_ended(*sandbox, std::max(left, std::chrono::milliseconds(0))) && clear_away(*sandbox)) {
      continue;
    }
    result.ending.push_back(sandbox->record().id);
    remove_remains(sandbox);
  }
  return result;
}

std::vector<store::Sandbox> LocalNode::unclear() const {
  const std::lock_guard lock(mutex_);
  return unclear_;
}

void LocalNode::set_unclear(std::vector<store::Sandbox> records) {
  const std::lock_guard lock(mutex_);
  unclear_ = std::move(records);
}

Task<void> LocalNode::take_over_later() {
  for (;;) {
    std::vector<store::Sandbox> records = unclear();
    if (records.empty()) co_return;
    co_await net::sleep_for(kTakeOverAgain);
    if (stopped_) co_return;
    auto done = co_await deps_.kernel_pool.run(
        [this, records = std::move(records)]() -> Result<TakenOver> { return take_over(records); });
    if (!done) {
      log_error(cat("take sandboxes over: ", done.error().message()));
      continue;
    }
    set_unclear(std::move(done->unclear));
    if (done->gone.empty()) continue;
    Remains remains{.ids = std::move(done->gone), .sweep = Sweep::kAgain};
    net::spawn(deps_.loop, clear_remains_later(std::move(remains)));
  }
}

LocalNode::Remains LocalNode::clear_remains(const Remains& remains) {
  Remains left;
  if (auto swept = deps_.driver.sweep_again(remains.ids); !swept) {
    log_warn(cat("clear away an earlier server's sandboxes: ", swept.error().message()));
    left.sweep = Sweep::kAgain;
  }
  for (const SandboxId& id : remains.ids) {
    if (auto removed = deps_.uppers.remove(id); !removed) {
      log_warn(cat("delete files of sandbox ", id.str(), ": ", removed.error().message()));
      left.ids.push_back(id);
    }
  }
  return left;
}

Task<void> LocalNode::clear_remains_later(Remains remains) {
  for (auto pause = kFirstClearPause;; pause = std::min(2 * pause, kLongestClearPause)) {
    co_await net::sleep_for(pause);
    if (stopped_) co_return;
    auto left = co_await deps_.kernel_pool.run(
        [this, remains]() -> Result<Remains> { return clear_remains(remains); });
    if (!left) continue;
    remains = *std::move(left);
    if (remains.ids.empty() && remains.sweep == Sweep::kDone) co_return;
  }
}

std::vector<store::Sandbox> LocalNode::end_outside(const std::vector<SandboxPtr>& sandboxes,
                                                   Ending ending) {
  std::vector<Log> logs = fetch_all_process_lines(sandboxes);
  for (const SandboxPtr& sandbox : sandboxes) {
    sandbox->end();
    sandbox->note(ended_line(deps_.clock.now(), ending));
  }
  std::vector<store::Sandbox> left;
  for (size_t i = 0; i < sandboxes.size(); ++i) {
    const store::Sandbox& record = sandboxes[i]->record();
    if (left.empty()) {
      auto stored = store_end(record, whole_log(*sandboxes[i], std::move(logs[i])));
      if (stored) continue;
      log_error(cat("forget sandbox ", record.id.str(), ": ", stored.error().message()));
    }
    left.push_back(record);
  }
  // As above: the one that failed comes last.
  if (!left.empty()) std::ranges::rotate(left, left.begin() + 1);
  return left;
}

void LocalNode::end_all() {
  std::vector<SandboxPtr> all = running();
  {
    const std::lock_guard lock(mutex_);
    sandboxes_.clear();
  }
  (void)end_outside(all, Ending::kAdmin);
  for (const SandboxPtr& sandbox : all) {
    // No loop runs any more that could wait for it.
    auto job = [this, sandbox] { (void)clear_away(*sandbox); };
    if (!deps_.kernel_pool.submit(job)) job();
  }
  const std::vector<store::Sandbox> records = unclear();
  if (records.empty()) return;
  if (auto swept = deps_.driver.sweep({}); !swept) log_error(swept.error().message());
  for (const store::Sandbox& record : records) {
    const Log log = {created_line(record), ended_line(deps_.clock.now(), Ending::kAdmin)};
    if (auto stored = store_end(record, log); !stored) log_error(stored.error().message());
    if (auto removed = deps_.uppers.remove(record.id); !removed) {
      log_error(removed.error().message());
    }
  }
  set_unclear({});
}

}  // namespace alcove::node

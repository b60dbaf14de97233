// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What the node does with sandboxes of an earlier server: take over, or clear away.

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

}  // namespace

Result<void> LocalNode::adopt_existing() {
  ALCOVE_TRY_ASSIGN(std::vector<store::Sandbox> records, deps_.store.list_sandboxes());
  ALCOVE_TRY_ASSIGN(unclear_, take_over(std::move(records)));
  std::set<SandboxId> keep;
  // An older interpreter needs no file: the sandboxes that have it mounted keep it.
  std::set<std::string> agents = {agent_hash_, interpreter_hash_};
  const auto keep_all_of = [&](const store::Sandbox& record) {
    keep.insert(record.id);
    agents.insert(record.agent_hash);
  };
  const std::vector<SandboxPtr> alive = running();
  for (const SandboxPtr& sandbox : alive) keep_all_of(sandbox->record());
  for (const store::Sandbox& record : unclear_) keep_all_of(record);

  // A process that does not end (a stuck disk) is no reason not to serve the others.
  if (auto swept = deps_.driver.sweep({keep.begin(), keep.end()}); !swept) {
    log_warn(cat("clear away an earlier server's sandboxes: ", swept.error().message()));
  }
  ALCOVE_TRY_ASSIGN(const std::vector<SandboxId> uppers, deps_.uppers.list());
  for (const SandboxId& id : uppers) {
    if (keep.contains(id)) continue;
    if (auto removed = deps_.uppers.remove(id); !removed) {
      log_warn(cat("delete files of sandbox ", id.str(), ": ", removed.error().message()));
    }
  }
  if (!alive.empty()) log_info(cat("took over ", alive.size(), " running sandboxes"));
  if (!unclear_.empty()) net::spawn(deps_.loop, take_over_later());
  return deps_.agents.keep_only(agents);
}

Result<std::vector<store::Sandbox>> LocalNode::take_over(std::vector<store::Sandbox> records) {
  std::vector<store::Sandbox> unclear;
  std::vector<SandboxPtr> expired;
  const WallTime now = deps_.clock.now();
  for (store::Sandbox& record : records) {
    auto machine = deps_.driver.adopt(record.id, record.machine_record);
    if (!machine && machine.error().code() != Code::kNotFound) {
      log_error(cat(machine.error().message(), "; it is kept, and tried again"));
      unclear.push_back(std::move(record));
      continue;
    }
    if (!machine) {
      log_info(cat("not taken over: ", machine.error().message()));
      ALCOVE_TRY(store_end(record, {created_line(record), ended_line(now, Ending::kMissed)}));
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
  ALCOVE_TRY(end_outside(expired, Ending::kTimeout));
  for (const SandboxPtr& sandbox : expired) (void)clear_away(*sandbox);
  return unclear;
}

Task<void> LocalNode::take_over_later() {
  while (!unclear_.empty()) {
    co_await net::sleep_for(kTakeOverAgain);
    if (stopped_) co_return;
    auto left =
        co_await deps_.kernel_pool.run([this, records = unclear_] { return take_over(records); });
    if (left) {
      unclear_ = *std::move(left);
    } else {
      // What has been done is found done, or as it was, the next time.
      log_error(cat("take sandboxes over: ", left.error().message()));
    }
  }
}

Result<void> LocalNode::end_outside(const std::vector<SandboxPtr>& sandboxes, Ending ending) {
  std::vector<Log> logs = fetch_all_process_lines(sandboxes);
  for (const SandboxPtr& sandbox : sandboxes) {
    sandbox->end();
    sandbox->note(ended_line(deps_.clock.now(), ending));
  }
  Result<void> result;
  for (size_t i = 0; i < sandboxes.size(); ++i) {
    const store::Sandbox& record = sandboxes[i]->record();
    auto stored = store_end(record, whole_log(*sandboxes[i], std::move(logs[i])));
    if (!stored) {
      result = fail(std::move(stored).error().context(cat("forget sandbox ", record.id.str())));
    }
  }
  return result;
}

void LocalNode::end_all() {
  std::vector<SandboxPtr> all = running();
  {
    const std::lock_guard lock(mutex_);
    sandboxes_.clear();
  }
  if (auto ended = end_outside(all, Ending::kAdmin); !ended) log_error(ended.error().message());
  for (const SandboxPtr& sandbox : all) remove_remains(sandbox);
  if (unclear_.empty()) return;
  if (auto swept = deps_.driver.sweep({}); !swept) log_error(swept.error().message());
  for (const store::Sandbox& record : unclear_) {
    const Log log = {created_line(record), ended_line(deps_.clock.now(), Ending::kAdmin)};
    if (auto stored = store_end(record, log); !stored) log_error(stored.error().message());
    if (auto removed = deps_.uppers.remove(record.id); !removed) {
      log_error(removed.error().message());
    }
  }
  unclear_.clear();
}

}  // namespace alcove::node

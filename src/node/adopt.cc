// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What the node does with sandboxes of an earlier server: take over, or clear away.

#include "base/log.h"
#include "base/strings.h"
#include "node/local_node.h"
#include "node/sandbox_log.h"

namespace alcove::node {

Result<void> LocalNode::adopt_existing() {
  ALCOVE_TRY_ASSIGN(const std::vector<store::Sandbox> records, deps_.store.list_sandboxes());
  std::vector<SandboxId> alive;
  // An older interpreter needs no file: the sandboxes that have it mounted keep it.
  std::set<std::string> agents = {agent_hash_, interpreter_hash_};
  const WallTime now = deps_.clock.now();
  for (const store::Sandbox& record : records) {
    auto machine = deps_.driver.adopt(record.id, record.machine_record);
    if (!machine || record.end_at <= now) {
      if (!machine) {
        log_info(cat("not taken over: ", machine.error().message()));
      } else {
        (*machine)->kill();
        (void)(*machine)->destroy();
        log_info(cat("sandbox ", record.id.str(), " expired while the server was down"));
      }
      const Ending ending = machine ? Ending::kTimeout : Ending::kMissed;
      ALCOVE_TRY(store_end(record, {created_line(record), ended_line(now, ending)}));
      continue;
    }
    alive.push_back(record.id);
    agents.insert(record.agent_hash);
    auto sandbox = std::make_shared<RunningSandbox>(record, deps_.driver.isolation_class(),
                                                    std::move(*machine));
    sandbox->note(taken_over_line(now));
    admit(std::move(sandbox));
  }
  // A process that does not end (a stuck disk) is no reason not to serve the others.
  if (auto swept = deps_.driver.sweep(alive); !swept) {
    log_warn(cat("clear away an earlier server's sandboxes: ", swept.error().message()));
  }

  ALCOVE_TRY_ASSIGN(const std::vector<SandboxId> uppers, deps_.uppers.list());
  const std::set<SandboxId> keep(alive.begin(), alive.end());
  for (const SandboxId& id : uppers) {
    if (keep.contains(id)) continue;
    if (auto removed = deps_.uppers.remove(id); !removed) {
      log_warn(cat("delete files of sandbox ", id.str(), ": ", removed.error().message()));
    }
  }
  if (!alive.empty()) log_info(cat("took over ", alive.size(), " running sandboxes"));
  return deps_.agents.keep_only(agents);
}

void LocalNode::end_all() {
  for (const SandboxPtr& sandbox : running()) {
    const SandboxId id = sandbox->record().id;
    {
      const std::lock_guard lock(mutex_);
      sandboxes_.erase(id);
    }
    sandbox->end();
    sandbox->note(ended_line(deps_.clock.now(), Ending::kAdmin));
    if (auto stored = store_end(sandbox->record(), whole_log(*sandbox, {})); !stored) {
      log_error(cat("forget sandbox ", id.str(), ": ", stored.error().message()));
    }
    remove_remains(sandbox);
  }
}

}  // namespace alcove::node

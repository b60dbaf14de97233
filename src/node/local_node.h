// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <unordered_map>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/descriptor_base.hpp>

#include "base/clock.h"
#include "image/upper_pool.h"
#include "net/blocking_pool.h"
#include "node/agent_store.h"
#include "node/build_image.h"
#include "node/log_lines.h"
#include "node/node.h"
#include "node/running_sandbox.h"
#include "node/tokens.h"
#include "store/store.h"

namespace alcove::node {

// The sandboxes of this machine. The registry is guarded by a mutex that is held for a lookup
// only; blocking work runs on the two pools; timers and exit watches belong to `loop`.
class LocalNode final : public Node {
 public:
  struct Dependencies {
    boost::asio::io_context& loop;
    sandbox::Driver& driver;
    image::UpperPool& uppers;
    store::Store& store;
    // Kernel work: mounts, clones, rmdir. More threads than cores only add latency.
    net::BlockingPool& kernel_pool;
    net::BlockingPool& store_pool;
    const Clock& clock;
    AgentStore& agents;
    TokenMaker tokens;
  };

  // What new sandboxes run, by hash; already in `agents`.
  struct Programs {
    std::string agent;
    // Only where the template wants it; empty: there is none.
    std::string interpreter = {};
  };
  LocalNode(Dependencies dependencies, Programs programs);
  ~LocalNode() override;

  // Takes over what an earlier server left running, ends what expired meanwhile and removes what
  // a crash left half-made. What does not succeed now is tried again once the loop runs; an error
  // only if nobody knows what there was. Blocks; before the loops start.
  Result<void> adopt_existing();
  // Stops timers and watches; sandboxes go on. On the loop, or after it has ended.
  void stop();
  // Ends every sandbox and removes all of it. Blocks.
  void end_all();

  Task<Result<LiveSandboxPtr>> create(CreateRequest request) override;
  LiveSandboxPtr find(const SandboxId& id) const override;
  std::vector<LiveSandboxPtr> list() const override;
  std::optional<TeamId> find_unclear(const SandboxId& id) const override;
  Task<Result<bool>> kill(SandboxId id) override;
  Task<Result<void>> set_end(SandboxId id, WallTime end_at) override;
  Task<Result<WallTime>> extend_end(SandboxId id, WallTime end_at) override;
  Task<Result<std::optional<Log>>> read_log(SandboxId id, TeamId team) override;

  // Those of list(), with their machines.
  std::vector<std::shared_ptr<RunningSandbox>> running() const;

 private:
  using SandboxPtr = std::shared_ptr<RunningSandbox>;
  struct Watch;

  Task<Result<SandboxPtr>> boot(const SandboxId& id, const CreateRequest& request,
                                const BuildImage& image);
  Result<void> check_disk_space();
  SandboxPtr find_running(const SandboxId& id) const;
  // Registers it, watches for its death and arms its expiry.
  void admit(SandboxPtr sandbox);
  void watch(SandboxPtr sandbox);
  void arm_exit(const SandboxPtr& sandbox);
  void arm_expiry(const SandboxPtr& sandbox);
  // The moment of a wall-clock time by the clock that nobody sets.
  RunningSandbox::End end_of(WallTime end_at) const;
  enum class Change { kAnyWay, kOnlyLater };
  // Returns the end in force. Blocks.
  Result<WallTime> change_end(const SandboxId& id, WallTime end_at, Change change);
  // Keeps ends where they are in time when somebody sets the system's clock.
  Task<void> follow_clock();
  Result<void> correct_ends();
  // The same for records of an earlier server, if the clock was set since it last looked.
  void correct_for_clock(std::vector<store::Sandbox>& records);
  // Takes it out of the registry, ends it and makes that durable; the clean-up follows in the
  // background.
  Task<Result<void>> retire(SandboxPtr sandbox, Ending ending);
  // Somebody else may be ending it: returns when that is durable. True if it had to wait.
  Task<bool> wait_while_ending(SandboxId id) const;
  // Starts and ends of processes, as the agent tells them; none if it does not in time.
  Task<Log> fetch_process_lines(SandboxPtr sandbox, std::chrono::milliseconds limit) const;
  // Of all of them, on a loop of its own. Blocks, for a fraction of a second in most cases.
  std::vector<Log> fetch_all_process_lines(const std::vector<SandboxPtr>& sandboxes) const;
  // Makes the end durable, with the log. Blocks.
  Result<void> store_end(const store::Sandbox& record, const Log& log);
  // In the background, until it succeeds.
  void remove_remains(SandboxPtr sandbox);
  Task<void> remove_when_ended(SandboxPtr sandbox);
  static bool has_ended(RunningSandbox& sandbox, std::chrono::milliseconds wait);
  // What the kernel and the disk hold of an ended one. Blocks.
  Result<void> clear_away(RunningSandbox& sandbox);

  // What came of sandboxes of an earlier server.
  struct TakenOver {
    // Of which nobody can say now whether they live, or whose end is not durable.
    std::vector<store::Sandbox> unclear;
    std::vector<SandboxId> gone;
    // Expired ones that take their time to end, and are cleared away then.
    std::vector<SandboxId> ending;
  };
  // Running ones are admitted, expired ones ended, the records of others dropped. Blocks.
  TakenOver take_over(std::vector<store::Sandbox> records);
  Task<void> take_over_later();
  std::vector<store::Sandbox> unclear() const;
  void set_unclear(std::vector<store::Sandbox> records);
  // Removes what these sandboxes left, and what a sweep could not. Returns those of which something
  // is still there. Blocks.
  enum class Sweep { kDone, kAgain };
  struct Remains {
    std::vector<SandboxId> ids;
    Sweep sweep = Sweep::kDone;
  };
  Remains clear_remains(const Remains& remains);
  Task<void> clear_remains_later(Remains remains);
  // Ends sandboxes that are not in the registry, and makes that durable. Returns the records of
  // those with which it did not succeed. Blocks.
  std::vector<store::Sandbox> end_outside(const std::vector<SandboxPtr>& sandboxes, Ending ending);

  Dependencies deps_;
  const std::string agent_hash_;
  const std::string interpreter_hash_;
  mutable std::mutex mutex_;
  std::unordered_map<SandboxId, SandboxPtr> sandboxes_;
  // Being killed: taken out of `sandboxes_`, not yet durable.
  std::set<SandboxId> ending_;
  // Neither taken over nor known to be gone.
  std::vector<store::Sandbox> unclear_;
  // On the loop only.
  std::unordered_map<SandboxId, std::unique_ptr<Watch>> watches_;
  std::atomic<bool> stopped_{false};
  // When old logs were last thrown away.
  std::atomic<WallTime> logs_tidied_at_{WallTime{}};
};

}  // namespace alcove::node

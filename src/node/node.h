// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "base/result.h"
#include "net/task.h"
#include "node/log_entry.h"
#include "sandbox/driver.h"
#include "store/records.h"

namespace alcove::node {

// What a sandbox used at one moment. What it may use is in its record.
struct Measurement {
  WallTime time;
  // Of all its CPUs together, since the measurement before.
  double cpu_used_percent = 0;
  uint64_t memory_used_bytes = 0;  // without the cache
  uint64_t memory_cache_bytes = 0;
  uint64_t disk_used_bytes = 0;
};

// A live sandbox as the gateway and the API see it. Held by shared_ptr: a request under way keeps
// it in memory, not alive. Every member function may be called from any thread.
class LiveSandbox {
 public:
  virtual ~LiveSandbox() = default;

  // What never changes after creation (end_at in it is the one at creation).
  virtual const store::Sandbox& record() const = 0;
  virtual WallTime end_at() const = 0;
  // False from the moment it is killed or found dead.
  virtual bool running() const = 0;
  virtual std::string isolation_class() const = 0;

  // A non-blocking socket inside the sandbox, connect under way (sandbox::Machine::connect).
  virtual Result<UniqueFd> connect(uint16_t port, sandbox::Machine::Family family) = 0;

  // Oldest first, bounds included; fewer of them the longer the range. Empty before the first.
  virtual std::vector<Measurement> measurements(WallTime from, WallTime until) const = 0;
  virtual std::optional<Measurement> last_measurement() const = 0;

  // Calls `on_end` once (on any thread) when the sandbox stops running, at once if it has already.
  // Returns a number for forget_end(), which makes sure it is not called afterwards.
  virtual uint64_t on_end(std::function<void()> callback) = 0;
  virtual void forget_end(uint64_t registration) = 0;
};

using LiveSandboxPtr = std::shared_ptr<LiveSandbox>;

// What a create asks for, already checked by the API.
struct CreateRequest {
  // For callers that have to write it down first.
  SandboxId id = make_sandbox_id();
  TeamId team;
  store::Template template_record;
  std::chrono::seconds timeout{300};
  std::map<std::string, std::string> metadata;
  std::map<std::string, std::string> env_vars;
  enum class Access { kOpen, kToken };
  // kToken: the agent demands an access token ("secure").
  Access agent_access = Access::kToken;
  // kToken: the other ports demand a traffic token (allowPublicTraffic: false).
  Access traffic_access = Access::kOpen;
  std::optional<bool> allow_internet_access;
  std::string network_json;
  std::string mcp_json;
};

// One machine's sandboxes. Thread-safe; tasks resume on the loop that awaits them.
class Node {
 public:
  virtual ~Node() = default;

  // Boots, introduces the agent, makes the record durable, then answers. On failure nothing is
  // left. kUnavailable with "sandbox_capacity_unavailable" semantics when the disk pool is nearly
  // full.
  virtual Task<Result<LiveSandboxPtr>> create(CreateRequest request) = 0;

  // nullptr if there is none that runs. A hash lookup under a short lock: for the hot path.
  virtual LiveSandboxPtr find(const SandboxId& id) const = 0;
  virtual std::vector<LiveSandboxPtr> list() const = 0;
  // The team of a sandbox of which nobody can say now whether it lives: a start could not find out,
  // and tries again.
  virtual std::optional<TeamId> find_unclear(const SandboxId& id) const = 0;

  // Durable when it returns; the rest of the clean-up goes on in the background. False: unknown.
  virtual Task<Result<bool>> kill(SandboxId id) = 0;

  // Sets the time of expiry. kNotFound if it is gone.
  virtual Task<Result<void>> set_end(SandboxId id, WallTime end_at) = 0;
  // Sets it only if that is later: what connect does. Returns the time in force.
  virtual Task<Result<WallTime>> extend_end(SandboxId id, WallTime end_at) = 0;

  // What happened to a sandbox of the team and in it, also for seven days after its end. Nothing:
  // unknown, another team's, or too long ago.
  virtual Task<Result<std::optional<Log>>> read_log(SandboxId id, TeamId team) = 0;
};

}  // namespace alcove::node

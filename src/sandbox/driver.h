// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/ids.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "network/egress_policy.h"

namespace alcove::sandbox {

// What a sandbox may use. The defaults are those of a recipe that names none.
struct Limits {
  uint32_t vcpu_count = 2;
  uint64_t memory_bytes = 1024ull << 20;
  uint32_t pids = 2048;
  uint64_t disk_bytes = 10ull << 30;
};

// Where BootSpec::ca_bundle is found inside.
inline constexpr const char* kCaBundleInside = "/run/alcove/ca-certificates.crt";

// Where BootSpec::interpreter_path is found inside.
inline constexpr const char* kInterpreterInside = "/run/alcove/interpreter";

// Everything a driver needs to start a sandbox. All paths are on the host.
struct BootSpec {
  SandboxId id;
  // Sandboxes with the same key share a pool of prepared resources: the build they come from.
  std::string pool_key;
  // Read-only layers, topmost first; their files have ids 0..65535 on disk.
  std::vector<std::string> layers;
  // Empty directories on one file system for the sandbox's own changes. The driver gives them the
  // right owner.
  std::string upper_dir;
  std::string work_dir;
  Limits limits;
  std::string hostname;
  // The in-sandbox daemon: a static program that is mounted read-only and becomes pid 1. It gets
  // a listening socket for `agent_port` (dual-stack, inside the sandbox's network) as fd 3.
  std::string agent_path;
  std::vector<std::string> agent_args;
  uint16_t agent_port = 49983;
  // The code interpreter, a static program that is mounted read-only as kInterpreterInside; empty:
  // none.
  std::string interpreter_path = {};
  // A file of certificates that is shown read-only as kCaBundleInside; empty: none.
  std::string ca_bundle;
  // What it may reach outside; in force before boot() returns.
  network::EgressPolicy egress;
};

struct Usage {
  uint64_t memory_bytes = 0;        // anonymous + cache, as charged
  uint64_t memory_cache_bytes = 0;  // the part that can be dropped
  uint64_t cpu_microseconds = 0;    // consumed since boot
  uint32_t pids = 0;
};

// A running sandbox as the kernel knows it. Calls block for microseconds to milliseconds and may
// come from any thread, one at a time per machine unless noted.
class Machine {
 public:
  // Dropping the object leaves the sandbox running (it outlives the server).
  virtual ~Machine() = default;

  // What Driver::adopt() needs to find this sandbox again after a restart of the server.
  virtual std::string record() const = 0;

  // A non-blocking TCP socket inside the sandbox's network with a connect to 127.0.0.1:port under
  // way or done (IPv6: [::1]). Thread-safe.
  enum class Family { kV4, kV6 };
  virtual Result<UniqueFd> connect(uint16_t port, Family family) = 0;

  // Becomes readable when pid 1 of the sandbox has died. Valid as long as the machine.
  virtual int exit_fd() const = 0;

  virtual Result<Usage> usage() = 0;

  // Ends every process inside. Returns at once; thread-safe; harmless if already dead.
  virtual void kill() = 0;

  // Of one that kill() does not end: frees its processes of what they wait for in the kernel
  // because of what they have set up themselves, as far as that can be. May be called again and
  // again.
  virtual void free_stuck() {}

  // After kill(): waits for the end and removes what the kernel holds (cgroups). Idempotent. The
  // upper directory belongs to the caller.
  virtual Result<void> destroy() = 0;
};

// A way of isolating sandboxes. Nothing outside a driver's room knows how it is done.
class Driver {
 public:
  virtual ~Driver() = default;

  // "jail", "microvm", ...: shown wherever a sandbox is shown.
  virtual std::string isolation_class() const = 0;

  // Starts a sandbox; when it returns, pid 1 runs the agent and its socket accepts connections.
  // On failure nothing is left behind. Thread-safe.
  virtual Result<std::unique_ptr<Machine>> boot(const BootSpec& spec) = 0;

  // Takes over a sandbox that an earlier server started; kNotFound if it is gone. After any other
  // failure nobody knows: it may live, and may be taken over later.
  virtual Result<std::unique_ptr<Machine>> adopt(const SandboxId& id,
                                                 const std::string& record) = 0;

  // Kills and removes every sandbox of this driver (below its own names) that is not in `keep`:
  // what a crash left behind. Called once at start, before the first boot.
  virtual Result<void> sweep(const std::vector<SandboxId>& keep) = 0;
  // Tries again what sweep() could not remove, and removes those that have turned out to be gone
  // since. Sandboxes may boot meanwhile.
  virtual Result<void> sweep_again(const std::vector<SandboxId>& gone) = 0;

  // Fills the pools for this key in the background, so that the next boots are quick.
  virtual void warm(const std::string& pool_key) = 0;
};

}  // namespace alcove::sandbox

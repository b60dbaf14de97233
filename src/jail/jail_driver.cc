// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/jail_driver.h"

#include <fcntl.h>
#include <linux/nsfs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "base/defer.h"
#include "base/log.h"
#include "base/sha256.h"
#include "base/strings.h"
#include "jail/jail_machine.h"
#include "jail/jail_record.h"
#include "jail/jail_state.h"
#include "jail/lean_root.h"
#include "network/id_range.h"
#include "sys/file_io.h"
#include "sys/fuse_connections.h"
#include "sys/netns.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

constexpr std::chrono::seconds kRemoveTimeout{10};
// For all that a sweep has to end, together: what takes longer is tried again.
constexpr std::chrono::seconds kSweepTimeout{3};
constexpr std::chrono::milliseconds kRetryTimeout{300};
// How long the end of processes takes when nothing hangs.
constexpr std::chrono::milliseconds kUsualEnd{100};
// sethostname(2) takes no more.
constexpr size_t kMaxHostname = 64;

std::chrono::steady_clock::time_point soon() {
  return std::chrono::steady_clock::now() + kRemoveTimeout;
}

Result<std::string> real_path(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error) return fail_errno(error.value(), path);
  return real.string();
}

// As many CPUs as the sandbox has, the next ones of the machine in turn.
std::string choose_cpus(JailState& state, uint32_t count) {
  const std::vector<uint32_t>& all = state.cgroups.cpus();
  if (count >= all.size()) count = static_cast<uint32_t>(all.size());
  const uint32_t first = state.next_cpu.fetch_add(count);
  std::vector<uint32_t> chosen;
  for (uint32_t i = 0; i < count; ++i) chosen.push_back(all[(first + i) % all.size()]);
  std::ranges::sort(chosen);
  std::string list;
  for (const uint32_t cpu : chosen) list += cat(list.empty() ? "" : ",", cpu);
  return list;
}

Result<void> check_spec(const sandbox::BootSpec& spec) {
  auto bad = [](const char* what) { return fail(Code::kInvalidArgument, what); };
  const std::string& id = spec.id.str();
  if (id.empty() || id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != id.npos) {
    return bad("sandbox id is not a plain name");
  }
  if (spec.layers.empty() || spec.layers.size() > kMaxLayers) return bad("no or too many layers");
  if (spec.hostname.empty() || spec.hostname.size() > kMaxHostname) return bad("bad hostname");
  if (spec.limits.vcpu_count == 0 || spec.limits.memory_bytes == 0 || spec.limits.pids == 0) {
    return bad("a limit is zero");
  }
  if (spec.agent_port == 0) return bad("agent port is zero");
  return {};
}

Result<BootRequest> make_request(const JailState& state, const sandbox::BootSpec& spec) {
  auto lean = [&](const std::string& path) {
    return to_lean_path(path, state.options.data_dir, state.options.extra_dirs);
  };
  BootRequest request;
  request.hostname = spec.hostname;
  for (const std::string& layer : spec.layers) {
    ALCOVE_TRY_ASSIGN(std::string path, lean(layer));
    request.layers.push_back(std::move(path));
  }
  ALCOVE_TRY_ASSIGN(request.upper_dir, lean(spec.upper_dir));
  ALCOVE_TRY_ASSIGN(request.work_dir, lean(spec.work_dir));
  ALCOVE_TRY_ASSIGN(request.agent_path, lean(spec.agent_path));
  request.agent_args = spec.agent_args;
  if (!spec.interpreter_path.empty()) {
    ALCOVE_TRY_ASSIGN(request.interpreter_path, lean(spec.interpreter_path));
  }
  if (!spec.ca_bundle.empty()) {
    ALCOVE_TRY_ASSIGN(request.ca_bundle, lean(spec.ca_bundle));
  }
  request.agent_port = spec.agent_port;
  request.cpus =
      std::min(spec.limits.vcpu_count, static_cast<uint32_t>(state.cgroups.cpus().size()));
  request.memory_bytes = spec.limits.memory_bytes;
  request.cgroup = cat(state.cgroups.prefix(), "/", spec.id.str());
  return request;
}

// Of which nothing is known but its cgroup: whose its processes are tells the range of ids.
void free_stuck(const sys::CgroupTree& cgroups, const std::string& name) {
  std::set<network::IdRange> ranges;
  for (const pid_t pid : cgroups.members(name)) {
    struct stat status{};
    if (::stat(cat("/proc/", pid).c_str(), &status) != 0) continue;
    const network::IdRange range = network::range_of(status.st_uid);
    if (range.valid()) ranges.insert(range);
  }
  for (const network::IdRange& range : ranges) {
    (void)sys::abort_fuse_connections(range.first_id(), network::kIdsPerRange);
  }
}

// The user namespace above the sandbox's own. The sandbox chooses which namespace its pid 1 is in,
// so that must be a direct child of one that the host's root made.
Result<UniqueFd> open_template_namespace(pid_t pid) {
  ALCOVE_TRY_ASSIGN(const UniqueFd user, sys::open_file(cat("/proc/", pid, "/ns/user"), O_RDONLY));
  UniqueFd parent(::ioctl(user.get(), NS_GET_PARENT));
  if (!parent.valid()) return fail_errno(errno, "parent of the sandbox's user namespace");
  uid_t owner = 0;
  if (::ioctl(parent.get(), NS_GET_OWNER_UID, &owner) != 0) return fail_errno(errno, "owner");
  if (owner != 0) return fail(Code::kNotFound, "pid 1 has left the sandbox's user namespace");
  return parent;
}

}  // namespace

struct JailDriver::Impl : JailState {
  using JailState::JailState;

  std::mutex sweep_mutex;
  // Names of cgroups that have to go.
  std::set<std::string> strays;
  // What the first sweep left alone.
  std::vector<SandboxId> kept;

  // The caller holds the mutex.
  Result<void> clear_strays(std::chrono::milliseconds patience) {
    Result<void> result;
    const auto begin = std::chrono::steady_clock::now();
    // All are told before any is waited for.
    for (const std::string& name : strays) (void)cgroups.kill(name, begin);
    for (const std::string& name : strays) {
      if (!cgroups.kill(name, begin + kUsualEnd)) free_stuck(cgroups, name);
    }
    const auto deadline = begin + patience;
    std::erase_if(strays, [&](const std::string& name) {
      auto killed = cgroups.kill(name, deadline);
      auto removed = cgroups.remove(name, deadline);
      const bool done = killed && removed;
      if (!killed) result = std::move(killed);
      if (!removed) result = std::move(removed);
      return done;
    });
    if (options.relay) {
      if (auto closed = options.relay->keep_only(kept); !closed) result = std::move(closed);
    }
    return result;
  }
};

JailDriver::JailDriver(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
JailDriver::~JailDriver() = default;

Result<std::unique_ptr<JailDriver>> JailDriver::create(Options options) {
  ALCOVE_TRY_ASSIGN(options.data_dir, real_path(options.data_dir));
  for (std::string& dir : options.extra_dirs) {
    ALCOVE_TRY_ASSIGN(dir, real_path(dir));
  }
  if (options.cgroup_prefix.empty()) {
    options.cgroup_prefix = cat("alcove-", sha256_hex(options.data_dir).substr(0, 8));
  }
  ALCOVE_TRY_ASSIGN(const std::string mountinfo, sys::read_file("/proc/self/mountinfo"));
  ALCOVE_TRY_ASSIGN(sys::CgroupLayout layout,
                    sys::find_cgroup_layout(mountinfo, sys::kernel_cgroup_fs()));
  ALCOVE_TRY_ASSIGN(
      sys::CgroupTree cgroups,
      sys::CgroupTree::open(std::move(layout), options.cgroup_prefix, sys::kernel_cgroup_fs()));
  ALCOVE_TRY_ASSIGN(UniqueFd netns, sys::open_own_netns());
  auto impl = std::make_shared<Impl>(std::move(options), std::move(cgroups), std::move(netns));
  ALCOVE_TRY(impl->launcher.start());
  return std::unique_ptr<JailDriver>(new JailDriver(std::move(impl)));
}

Result<std::unique_ptr<sandbox::Machine>> JailDriver::boot(const sandbox::BootSpec& spec) {
  ALCOVE_TRY(check_spec(spec));
  const std::string& id = spec.id.str();
  ALCOVE_TRY_ASSIGN(BootRequest request, make_request(*impl_, spec));

  Rollback rollback;
  ALCOVE_TRY_ASSIGN(network::NamespacePair pair, impl_->pairs.take(spec.pool_key));
  request.range = pair.range;
  rollback.add([this, &spec, range = pair.range] { impl_->pairs.give_back(spec.pool_key, range); });

  const auto netns = std::make_shared<const UniqueFd>(std::move(pair.net_ns));
  // The relay works while the sandbox starts.
  relay::RelayClient* const relay = impl_->options.relay.get();
  std::optional<relay::RelayClient::Opening> egress;
  if (relay != nullptr) {
    egress = relay->begin_open(spec.id, spec.egress, netns);
    rollback.add([relay, &spec] { relay->close(spec.id); });
  }

  ALCOVE_TRY(impl_->cgroups.create(id, {.memory_bytes = spec.limits.memory_bytes,
                                        .cpus = spec.limits.vcpu_count,
                                        .cpu_set = choose_cpus(*impl_, spec.limits.vcpu_count),
                                        .pids = spec.limits.pids}));
  rollback.add([this, &id] {
    (void)impl_->cgroups.kill(id, soon());
    (void)impl_->cgroups.remove(id, soon());
  });
  ALCOVE_TRY_ASSIGN(const sys::CgroupEntry entry, impl_->cgroups.enter(id));

  std::vector<int> fds = {pair.user_ns.get(), netns->get()};
  request.has_cgroup2 = entry.v2_dir.valid();
  if (request.has_cgroup2) fds.push_back(entry.v2_dir.get());
  for (const UniqueFd& tasks : entry.v1_tasks) fds.push_back(tasks.get());
  auto started = impl_->launcher.boot(request, fds);
  if (!started) return fail(std::move(started).error().context(cat("boot sandbox ", id)));
  if (egress) ALCOVE_TRY(relay->finish_open(std::move(*egress)));
  JailRecord record;
  record.pid = started->pid;
  ALCOVE_TRY_ASSIGN(record.start_time, sys::process_start_time(started->pid));
  record.range = pair.range;
  record.pool_key = spec.pool_key;
  record.cgroup_prefix = impl_->options.cgroup_prefix;
  record.egress = spec.egress;
  rollback.release();
  return std::make_unique<JailMachine>(impl_, spec.id, std::move(record), std::move(started->pidfd),
                                       netns);
}

Result<std::unique_ptr<sandbox::Machine>> JailDriver::adopt(const SandboxId& id,
                                                            const std::string& record_text) {
  auto gone = [&](const char* why) {
    return fail(Code::kNotFound, cat("sandbox ", id.str(), " is gone: ", why));
  };
  auto parsed = parse_jail_record(record_text);
  // Nobody will ever find it by this.
  if (!parsed) return gone(parsed.error().message().c_str());
  JailRecord record = *std::move(parsed);
  // Only what the kernel says about the process shows that it is gone. A shortage here, say of
  // descriptors, must not cost anybody their sandbox.
  auto unclear = [&](Error error) {
    if (error.code() == Code::kNotFound) return gone(error.message().c_str());
    return fail(std::move(error).context(cat("take over sandbox ", id.str())));
  };
  if (record.cgroup_prefix != impl_->options.cgroup_prefix) return gone("other cgroup prefix");
  auto pidfd = sys::open_pidfd(record.pid);
  // EINVAL: the number is a thread's by now.
  if (!pidfd && pidfd.error().error_number() == EINVAL) return gone("its pid has another process");
  if (!pidfd) return unclear(std::move(pidfd).error());
  // With the process held, its number cannot go to another one while we look.
  const auto start_time = sys::process_start_time(record.pid);
  if (!start_time) return unclear(start_time.error());
  if (*start_time != record.start_time) return gone("its pid has another process");
  const auto contained = impl_->cgroups.contains(id.str(), record.pid);
  if (!contained) return unclear(contained.error());
  if (!*contained) return gone("not in its cgroup");
  auto netns = sys::open_file(cat("/proc/", record.pid, "/ns/net"), O_RDONLY);
  if (!netns) return unclear(std::move(netns).error());
  auto template_ns = open_template_namespace(record.pid);
  if (!template_ns) return unclear(std::move(template_ns).error());
  if (const auto ours = impl_->pairs.adopt(record.pool_key, record.range, std::move(*template_ns));
      !ours) {
    return unclear(Error(Code::kUnavailable, ours.error().message()));
  }
  const auto shared_netns = std::make_shared<const UniqueFd>(std::move(*netns));
  if (relay::RelayClient* relay = impl_->options.relay.get()) {
    const auto opened = relay->finish_open(relay->begin_open(id, record.egress, shared_netns));
    // Then it reaches nothing, or what it reached before, until a relay is told of it again.
    if (!opened) log_warn(cat("egress of sandbox ", id.str(), ": ", opened.error().message()));
  }
  return std::make_unique<JailMachine>(impl_, id, std::move(record), std::move(*pidfd),
                                       shared_netns);
}

Result<void> JailDriver::sweep(const std::vector<SandboxId>& keep) {
  const std::lock_guard lock(impl_->sweep_mutex);
  impl_->kept = keep;
  for (const std::string& name : impl_->cgroups.list()) {
    if (std::ranges::find(keep, name, &SandboxId::str) == keep.end()) impl_->strays.insert(name);
  }
  return impl_->clear_strays(kSweepTimeout);
}

Result<void> JailDriver::sweep_again(const std::vector<SandboxId>& gone) {
  const std::lock_guard lock(impl_->sweep_mutex);
  for (const SandboxId& id : gone) {
    impl_->strays.insert(id.str());
    std::erase(impl_->kept, id);
  }
  // What has not ended by now is not waited for again.
  return impl_->clear_strays(kRetryTimeout);
}

void JailDriver::warm(const std::string& pool_key) { impl_->pairs.warm(pool_key); }

}  // namespace alcove::jail

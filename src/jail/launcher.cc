// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "jail/launcher.h"

#include <fcntl.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <ctime>
#include <span>

#include "base/strings.h"
#include "jail/boot_context.h"
#include "jail/kernel_shares.h"
#include "jail/launch_protocol.h"
#include "jail/lean_root.h"
#include "jail/machine_look.h"
#include "jail/namespace_factory.h"
#include "jail/seccomp_policy.h"
#include "sys/cgroup_layout.h"
#include "sys/file_io.h"
#include "sys/message.h"
#include "sys/process.h"

namespace alcove::jail {
namespace {

void answer(int status, const Answer& message, const std::vector<int>& fds = {}) {
  (void)sys::send_message(status, encode(message), fds);
}

void answer_failure(int status, const char* step, const Error& error) {
  answer(status, StepFailed{step, error.message(), error.error_number()});
}

[[noreturn]] void make_pairs(const PairsRequest& request, const std::vector<UniqueFd>& fds) {
  const int status = fds[0].get();
  const auto entered = enter_template_namespace(fds[1].get());
  if (!entered) {
    answer_failure(status, "enter template namespace", entered.error());
    ::_exit(1);
  }
  std::vector<NewPair> pairs;
  std::vector<int> raw;
  // What the kernel did not take for one it does not take for the next, and it takes its time.
  size_t rule_set = 0;
  for (const network::IdRange& range : request.ranges) {
    auto pair = make_namespace_pair(range.index, std::span(request.rule_sets).subspan(rule_set));
    if (!pair) {
      answer_failure(status, "make namespace pair", pair.error());
      ::_exit(1);
    }
    rule_set += pair->rule_set;
    raw.push_back(pair->user_ns.get());
    raw.push_back(pair->net_ns.get());
    pairs.push_back(std::move(*pair));
  }
  answer(status, Done{rule_set}, raw);
  ::_exit(0);
}

std::string overlay_options(const BootRequest& request) {
  std::string options = "volatile,lowerdir=";
  for (size_t i = 0; i < request.layers.size(); ++i) {
    options += cat(i == 0 ? "" : ":", kLeanLayers, "/", i);
  }
  // Any byte that overlayfs takes for its own in these two is escaped.
  auto escape = [](const std::string& path) {
    std::string out;
    for (const char c : path) {
      if (c == ',' || c == ':' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  return cat(options, ",upperdir=", escape(request.upper_dir),
             ",workdir=", escape(request.work_dir));
}

// The hierarchies that tell a sandbox its limits: v1's one by one, or v2's "unified".
Result<CgroupMounts> find_cgroup_mounts() {
  ALCOVE_TRY_ASSIGN(const std::string mountinfo, sys::read_file("/proc/self/mountinfo"));
  ALCOVE_TRY_ASSIGN(const auto layout, sys::find_cgroup_layout(mountinfo, sys::kernel_cgroup_fs()));
  CgroupMounts mounts;
  if (layout.v2_controllers.contains("memory")) {
    mounts.emplace_back("unified", layout.v2);
    return mounts;
  }
  for (const std::string_view controller : sys::kShownControllers) {
    const auto found = layout.v1.find(std::string(controller));
    if (found != layout.v1.end()) mounts.emplace_back(found->first, found->second);
  }
  return mounts;
}

void fill_cgroup_binds(BootContext& context, const CgroupMounts& mounts) {
  for (const auto& [name, mount_point] : mounts) {
    const std::string target = name == "unified" ? "" : cat("/", name);
    context.cgroup_binds.emplace_back(cat(kLeanCgroups, "/", name, "/", context.request.cgroup),
                                      cat("/sys/fs/cgroup", target));
  }
}

Result<BootContext> make_context(BootRequest request, std::vector<UniqueFd> fds) {
  BootContext context;
  context.status = std::move(fds[0]);
  context.user_ns = std::move(fds[1]);
  context.net_ns = std::move(fds[2]);
  size_t next = 3;
  if (request.has_cgroup2) context.cgroup2 = std::move(fds[next++]);
  while (next < fds.size()) context.v1_tasks.push_back(std::move(fds[next++]));
  const uint32_t root = request.range.first_id();
  context.overlay_options = overlay_options(request);
  // mount(2) cuts what is longer than a page.
  if (context.overlay_options.size() >= 4096) return fail_errno(ENAMETOOLONG, request.upper_dir);
  context.dev_options = cat("mode=755,size=1m,nr_inodes=4k,uid=", root, ",gid=", root);
  // Half of the memory, as Linux does it by itself.
  context.shm_options = cat("mode=1777,size=", request.memory_bytes / 2);
  context.run_options = cat("mode=755,size=", request.memory_bytes / 2);
  context.stat_text = look_of_stat(request.cpus, ::time(nullptr));
  auto look_dir = prepare_look(request.cpus, request.memory_bytes);
  if (!look_dir) return fail(std::move(look_dir).error());
  context.look_dir = std::move(*look_dir);
  context.request = std::move(request);
  return context;
}

void fill_argv(BootContext& context) {
  static char name[] = "/run/alcove/agent";
  context.agent_argv.push_back(name);
  for (std::string& argument : context.request.agent_args) {
    context.agent_argv.push_back(argument.data());
  }
  context.agent_argv.push_back(nullptr);
}

}  // namespace

Result<void> Launcher::prepare(const std::string& data_dir,
                               const std::vector<std::string>& extra_dirs) {
  // Children are reaped by the kernel, orphans of children too.
  (void)::signal(SIGCHLD, SIG_IGN);
  // The C library keeps these two from signal(), and sandboxes must not inherit them ignored.
  for (const int reserved : {32, 33}) {
    const unsigned long defaults[4] = {};
    (void)::syscall(SYS_rt_sigaction, reserved, defaults, nullptr, sizeof(unsigned long));
  }
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) return fail_errno(errno, "become subreaper");
  lift_host_limits();
  // Modes are given in full; a sandbox's pid 1 gets the usual mask.
  ::umask(0);
  // Sandboxes must not inherit the protection that a server may have.
  const auto badness = sys::read_file("/proc/self/oom_score_adj");
  if (badness && badness->starts_with('-')) {
    ALCOVE_TRY(sys::write_file("/proc/self/oom_score_adj", "0"));
  }
  // An empty session keyring: the host's would be within reach of every sandbox.
  if (::syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr) < 0 && errno != ENOSYS) {
    return fail_errno(errno, "new session keyring");
  }
  ALCOVE_TRY_ASSIGN(cgroup_mounts_, find_cgroup_mounts());
  ALCOVE_TRY(enter_lean_root(data_dir, extra_dirs, cgroup_mounts_));
  // Loaded here once instead of in each sandbox: it is inherited, and loading takes as long as a
  // tenth of a boot. Everything the launcher itself calls is on the list.
  ALCOVE_TRY_ASSIGN(const auto filter, compile_seccomp_policy());
  return load_seccomp_filter(filter);
}

void Launcher::handle(const TemplateNamespaceRequest& request, std::vector<UniqueFd> fds) {
  const auto made = make_template_namespace(request.block);
  if (!made) return answer_failure(fds[0].get(), "make template namespace", made.error());
  answer(fds[0].get(), Done{}, {made->get()});
}

// In a process of its own: there is no way back from a user namespace.
void Launcher::handle(const PairsRequest& request, std::vector<UniqueFd> fds) {
  if (fds.size() != 2) return;
  const pid_t pid = sys::clone_process({});
  if (pid == 0) make_pairs(request, fds);
  if (pid < 0) answer(fds[0].get(), StepFailed{"fork", "", errno});
}

void Launcher::handle(BootRequest request, std::vector<UniqueFd> fds) {
  if (fds.size() < (request.has_cgroup2 ? 4u : 3u)) return;
  const UniqueFd status(::fcntl(fds[0].get(), F_DUPFD_CLOEXEC, 0));
  if (request.layers.empty() || request.layers.size() > kMaxLayers || !request.range.valid()) {
    return answer(status.get(), StepFailed{"check request", "layers or id range", EINVAL});
  }
  auto agent = shared_files_.find(request.agent_path);
  if (!agent) return answer_failure(status.get(), "find the agent", agent.error());
  request.agent_path = std::move(*agent);
  if (!request.interpreter_path.empty()) {
    auto interpreter = shared_files_.find(request.interpreter_path);
    if (!interpreter) {
      return answer_failure(status.get(), "find the interpreter", interpreter.error());
    }
    request.interpreter_path = std::move(*interpreter);
  }
  if (!request.ca_bundle.empty()) {
    auto bundle = shared_files_.find(request.ca_bundle);
    if (!bundle) return answer_failure(status.get(), "find the CA bundle", bundle.error());
    request.ca_bundle = std::move(*bundle);
  }
  auto context = make_context(std::move(request), std::move(fds));
  if (!context) return answer_failure(status.get(), "prepare boot", context.error());
  fill_argv(*context);
  fill_cgroup_binds(*context, cgroup_mounts_);
  // Born in the cgroup, with a mount namespace that only this sandbox's two processes see.
  const pid_t pid = sys::clone_process({.flags = CLONE_NEWNS, .cgroup_fd = context->cgroup2.get()});
  if (pid == 0) run_host_side(*context);
  if (pid < 0) answer(status.get(), StepFailed{"clone", "", errno});
}

void Launcher::serve() {
  answer(socket_, Done{});
  for (;;) {
    auto message = sys::receive_message(socket_);
    if (!message) {
      if (message.error().code() == Code::kResourceExhausted) continue;
      return;
    }
    auto request = decode_request(message->bytes);
    if (!request || message->fds.empty()) continue;
    std::visit([&](auto& body) { handle(std::move(body), std::move(message->fds)); }, *request);
  }
}

}  // namespace alcove::jail

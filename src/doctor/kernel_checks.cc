// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <linux/capability.h>

#include <charconv>
#include <utility>

#include "base/strings.h"
#include "doctor/checks.h"
#include "sys/cgroup_layout.h"

namespace alcove::doctor {
namespace {

constexpr const char* kNoSandbox = "no sandbox can start";

// The first number of a text and what follows it.
std::pair<int, std::string_view> take_number(std::string_view text) {
  int value = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return {error == std::errc{} ? value : -1, text.substr(static_cast<size_t>(end - text.data()))};
}

// "Name:\tvalue" of /proc/self/status.
std::string_view status_field(std::string_view status, std::string_view name) {
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(name)) return trim(line.substr(name.size()));
  }
  return {};
}

struct Capability {
  int number;
  std::string_view name;
};
constexpr Capability kNeeded[] = {
    {CAP_CHOWN, "CHOWN"},
    {CAP_DAC_OVERRIDE, "DAC_OVERRIDE"},
    {CAP_FOWNER, "FOWNER"},
    {CAP_KILL, "KILL"},
    {CAP_SETGID, "SETGID"},
    {CAP_SETUID, "SETUID"},
    {CAP_NET_ADMIN, "NET_ADMIN"},
    {CAP_SYS_CHROOT, "SYS_CHROOT"},
    {CAP_SYS_ADMIN, "SYS_ADMIN"},
    {CAP_MKNOD, "MKNOD"},
    {CAP_SYS_PTRACE, "SYS_PTRACE"},
    {CAP_SETFCAP, "SETFCAP"},
    // The relay keeps the first two and gives up all others (relay/relay_main.cc); without it the
    // server does not start.
    {CAP_NET_RAW, "NET_RAW"},
    {CAP_NET_BIND_SERVICE, "NET_BIND_SERVICE"},
    {CAP_SETPCAP, "SETPCAP"},
};

// Lets the layout be read from any machine.
class ReadOnlyCgroups final : public sys::CgroupFs {
 public:
  explicit ReadOnlyCgroups(const System& system) : system_(system) {}
  Result<std::string> read(const std::string& path) override {
    if (auto text = system_.read(path)) return std::move(*text);
    return fail(Code::kNotFound, cat("read ", path));
  }
  bool exists(const std::string& path) override { return system_.exists(path); }
  Result<void> make_dir(const std::string&) override { return refuse(); }
  Result<void> remove_dir(const std::string&) override { return refuse(); }
  Result<void> write(const std::string&, std::string_view) override { return refuse(); }
  std::vector<std::string> list_dirs(const std::string&) override { return {}; }

 private:
  static Result<void> refuse() { return fail(Code::kUnimplemented, "read-only"); }
  const System& system_;
};

Result<sys::CgroupLayout> cgroup_layout(const System& system) {
  ReadOnlyCgroups cgroups(system);
  return sys::find_cgroup_layout(system.read("/proc/self/mountinfo").value_or(""), cgroups);
}

}  // namespace

Finding check_kernel(const System& system) {
  const std::string release(trim(system.read("/proc/sys/kernel/osrelease").value_or("")));
  const auto [major, rest] = take_number(release);
  const int minor = rest.starts_with('.') ? take_number(rest.substr(1)).first : -1;
  if (major > 6 || (major == 6 && minor >= 1)) return ok("kernel", release);
  return missing("kernel", release.empty() ? "unknown" : release,
                 "sandboxes need calls of Linux 6.1", "use Linux 6.1 or newer (Debian 12 has it)");
}

Finding check_privileges(const System& system) {
  const std::string status = system.read("/proc/self/status").value_or("");
  const auto ids = split(status_field(status, "Uid:"), '\t');
  const bool root = ids.size() > 1 && ids[1] == "0";
  uint64_t effective = 0;
  const std::string_view hex = status_field(status, "CapEff:");
  std::from_chars(hex.data(), hex.data() + hex.size(), effective, 16);
  std::vector<std::string> lacking;
  for (const Capability& capability : kNeeded) {
    if ((effective >> capability.number & 1) == 0) lacking.emplace_back(capability.name);
  }
  if (!root) {
    return missing("root", "not root", "the server makes namespaces, mounts and cgroups",
                   "run it as root (sudo)");
  }
  if (!lacking.empty()) {
    return missing("root", cat("root without ", join(lacking, ", ")), kNoSandbox,
                   "give the container or unit these capabilities (a privileged container has "
                   "them)");
  }
  return ok("root", "all capabilities that are needed");
}

Finding check_cgroups(const System& system) {
  const auto layout = cgroup_layout(system);
  if (!layout) {
    return missing("cgroups", layout.error().message(), "sandboxes cannot be limited",
                   "mount cgroup2 on /sys/fs/cgroup, or boot with cgroup_enable=memory where the "
                   "memory controller is off");
  }
  std::vector<std::string> v1;
  for (const auto& [controller, mount] : layout->v1) v1.push_back(controller);
  const std::vector<std::string> v2(layout->v2_controllers.begin(), layout->v2_controllers.end());
  std::string detail;
  if (v1.empty()) {
    detail = cat("v2 (", join(v2, ", "), ")");
  } else if (layout->v2.empty()) {
    detail = cat("v1 (", join(v1, ", "), ")");
  } else {
    detail = cat("hybrid: v1 (", join(v1, ", "), "), v2 (",
                 v2.empty() ? "no controllers" : join(v2, ", "), ")");
  }
  if (!layout->v1.contains("cpuset") && !layout->v2_controllers.contains("cpuset")) {
    return warning("cgroups", detail + ", no cpuset",
                   "programs inside see all CPUs of the machine and start too many threads",
                   "use a kernel with CONFIG_CPUSETS, or mount that controller");
  }
  return ok("cgroups", std::move(detail));
}

Finding check_birth_in_cgroup(const System& system) {
  constexpr std::string_view kName = "clone3 into a cgroup";
  const auto layout = cgroup_layout(system);
  if (!layout || layout->v2.empty()) return ok(kName, "not needed: there is no cgroup2");
  const auto tried = system.try_clone_into_cgroup(layout->v2);
  if (tried) return ok(kName, "works");
  return missing(kName, tried.error().message(), kNoSandbox,
                 "use Linux 5.7 or newer, and let this container make cgroups (a writable "
                 "/sys/fs/cgroup)");
}

Finding check_namespaces(const System& system) {
  constexpr std::pair<Feature, const char*> kAll[] = {
      {Feature::kUserNamespace, "user"},     {Feature::kPidNamespace, "pid"},
      {Feature::kMountNamespace, "mount"},   {Feature::kNetworkNamespace, "network"},
      {Feature::kUtsNamespace, "uts"},       {Feature::kIpcNamespace, "ipc"},
      {Feature::kCgroupNamespace, "cgroup"}, {Feature::kTimeNamespace, "time"},
  };
  std::vector<std::string> lacking;
  std::vector<std::string> there;
  for (const auto& [feature, name] : kAll) {
    const auto tried = system.try_feature(feature);
    if (tried) {
      there.emplace_back(name);
    } else {
      lacking.push_back(cat(name, " (", tried.error().message(), ")"));
    }
  }
  if (lacking.empty()) return ok("namespaces", join(there, ", "));
  return missing("namespaces", cat("cannot make: ", join(lacking, ", ")), kNoSandbox,
                 "use a kernel with all namespaces; check the sysctls user.max_*_namespaces and, "
                 "in a container, that it is privileged");
}

Finding check_overlay(const System& system) {
  const auto tried = system.try_feature(Feature::kOverlay);
  if (tried) return ok("overlayfs", "works");
  return missing("overlayfs", tried.error().message(), kNoSandbox,
                 "modprobe overlay, or a kernel with CONFIG_OVERLAY_FS");
}

Finding check_idmapped_mounts(const System& system, const Plan& plan) {
  const std::string directory = existing_parent(system, plan.data_dir);
  const auto tried = system.try_idmap(directory);
  if (tried) return ok("idmapped mounts", cat("work below ", directory));
  return missing("idmapped mounts", cat(directory, ": ", tried.error().message()), kNoSandbox,
                 "put the data directory (--data-dir) on ext4, XFS or btrfs");
}

Finding check_seccomp(const System& system) {
  const auto tried = system.try_feature(Feature::kSeccomp);
  if (tried) return ok("seccomp", "works");
  return missing("seccomp", tried.error().message(), "system calls could not be filtered",
                 "use a kernel with CONFIG_SECCOMP_FILTER");
}

Finding check_pidfd(const System& system) {
  const auto tried = system.try_feature(Feature::kPidfd);
  if (tried) return ok("pidfd", "works");
  return missing("pidfd", tried.error().message(), kNoSandbox,
                 "use Linux 5.3 or newer without a filter of pidfd_open");
}

// All rule sets have these; a kernel that refuses one of them gives no sandbox its network.
Finding check_nftables(const System& system) {
  struct Part {
    Feature feature;
    std::string_view name;
    const char* remedy;
  };
  constexpr Part kParts[] = {
      {Feature::kNftables, "tables of IPv4 and IPv6",
       "modprobe nf_tables, or a kernel with CONFIG_NF_TABLES and CONFIG_NF_TABLES_INET"},
      {Feature::kReject, "reject",
       "modprobe nft_reject_inet, or a kernel with CONFIG_NFT_REJECT_INET"},
      {Feature::kTproxy, "tproxy for IPv4 and IPv6",
       "modprobe nft_tproxy, or a kernel with CONFIG_NFT_TPROXY and CONFIG_NF_TABLES_IPV6"},
  };
  for (const Part& part : kParts) {
    const auto tried = system.try_feature(part.feature);
    if (tried) continue;
    return missing("nftables", cat("no ", part.name, ": ", tried.error().message()), kNoSandbox,
                   part.remedy);
  }
  return ok("nftables", "with reject and tproxy");
}

Finding check_queue(const System& system) {
  const auto tried = system.try_feature(Feature::kQueue);
  if (tried) return ok("NFQUEUE", "works");
  return warning("NFQUEUE", tried.error().message(),
                 "a connection from a sandbox to a closed port is made and then cut, instead of "
                 "refused",
                 "modprobe nft_queue, or a kernel with CONFIG_NFT_QUEUE or "
                 "CONFIG_NETFILTER_XT_TARGET_NFQUEUE");
}

}  // namespace alcove::doctor

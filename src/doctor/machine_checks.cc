// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <algorithm>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <vector>

#include "base/strings.h"
#include "doctor/checks.h"

namespace alcove::doctor {
namespace {

constexpr uint64_t kMebibyte = 1ull << 20;
constexpr uint64_t kGibibyte = 1ull << 30;
// The base template and a pool that is worth the name.
constexpr uint64_t kComfortableDisk = 10 * kGibibyte;
constexpr uint64_t kLeastDisk = 3 * kGibibyte;
// What a sandbox of the default size may take.
constexpr uint64_t kComfortableMemory = kGibibyte;
// Below this the server keeps half of its descriptors for sandboxes (main/serve.cc).
constexpr uint64_t kComfortableDescriptors = 16384;

std::string gibibytes(uint64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB",
                static_cast<double>(bytes) / static_cast<double>(kGibibyte));
  return text;
}

// The kernel has the file system, or would load it.
bool knows_filesystem(const System& system, const std::string& name) {
  const std::string known = system.read("/proc/filesystems").value_or("");
  for (const std::string_view line : split(known, '\n')) {
    const auto words = split(line, '\t');
    if (!words.empty() && words.back() == name) return true;
  }
  const std::string release(trim(system.read("/proc/sys/kernel/osrelease").value_or("")));
  const std::string modules =
      system.read(cat("/lib/modules/", release, "/modules.dep")).value_or("");
  return modules.find(cat("/", name, ".ko")) != std::string::npos;
}

// Programs that are not there, and the packages that bring them.
struct Lack {
  std::vector<std::string> programs;
  std::vector<std::string> packages;

  void add(const std::string& program, const std::string& package) {
    programs.push_back(program);
    if (std::ranges::find(packages, package) == packages.end()) packages.push_back(package);
  }
  std::string detail() const { return cat("not installed: ", join(programs, ", ")); }
  std::string remedy() const { return cat("apt-get install ", join(packages, " ")); }
};

struct Tool {
  const char* program;
  const char* package;
};

Lack find_lack(const System& system, std::initializer_list<Tool> tools) {
  Lack lack;
  for (const auto& [program, package] : tools) {
    if (system.find_program(program).empty()) lack.add(program, package);
  }
  return lack;
}

// The server of a data directory runs, and clients are told this port.
bool is_port_of_server(const System& system, const std::string& data_dir, uint16_t port) {
  const std::string settings = system.read(data_dir + "/env").value_or("");
  if (settings.find(cat(":", port, "\n")) == std::string::npos) return false;
  const auto pid = parse_number<int>(trim(system.read(data_dir + "/server.pid").value_or("")));
  return pid && trim(system.read(cat("/proc/", *pid, "/comm")).value_or("")) == "alcove";
}

}  // namespace

Finding check_resolvers(const System& system) {
  std::vector<std::string> servers;
  const std::string text = system.read("/etc/resolv.conf").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with("nameserver")) continue;
    const std::string_view address = trim(line.substr(std::string_view("nameserver").size()));
    if (!address.empty()) servers.emplace_back(address);
  }
  if (!servers.empty()) return ok("resolv.conf", join(servers, ", "));
  return warning("resolv.conf", "names no server", "programs inside cannot resolve names",
                 "write a `nameserver` line to /etc/resolv.conf");
}

Finding check_helpers(const System& system) {
  std::vector<std::string> lacking;
  for (const char* name :
       {"alcove-jail", "alcove-agent", "alcove-interpreter", "alcove-relay", "alcove-step"}) {
    if (!system.exists(cat(system.program_dir(), "/", name))) lacking.emplace_back(name);
  }
  if (lacking.empty()) return ok("helper programs", cat("in ", system.program_dir()));
  return missing("helper programs", cat("not in ", system.program_dir(), ": ", join(lacking, ", ")),
                 "the server does not start", "build or install alcove again");
}

Finding check_disk_limits(const System& system) {
  std::vector<std::string> lacking;
  std::vector<std::string> remedies;
  if (!knows_filesystem(system, "btrfs")) {
    lacking.emplace_back("btrfs in the kernel");
    remedies.emplace_back("use a kernel with CONFIG_BTRFS_FS");
  }
  if (!system.exists("/dev/loop-control")) {
    lacking.emplace_back("loop devices");
    remedies.emplace_back("modprobe loop");
  }
  if (system.find_program("mkfs.btrfs").empty()) {
    lacking.emplace_back("mkfs.btrfs");
    remedies.emplace_back("apt-get install btrfs-progs");
  }
  if (lacking.empty()) return ok("disk limits", "by a btrfs pool");
  return warning("disk limits", cat("missing: ", join(lacking, ", ")),
                 "sandboxes have no disk limit: one can fill the machine's disk",
                 join(remedies, "; "));
}

// What template/from_layer.cc runs.
Finding check_debian_tools(const System& system) {
  constexpr const char* kName = "Debian templates";
  const Lack lack = find_lack(
      system, {{"mmdebstrap", "mmdebstrap"}, {"setpriv", "util-linux"}, {"unshare", "util-linux"}});
  if (lack.programs.empty()) return ok(kName, cat("by ", system.find_program("mmdebstrap")));
  return warning(kName, lack.detail(),
                 "templates cannot be built from Debian packages (`base` is one)", lack.remedy());
}

// What template/python_layer.cc runs.
Finding check_python_tools(const System& system) {
  constexpr const char* kName = "Python packages";
  Lack lack =
      find_lack(system, {{"python3", "python3"}, {"setpriv", "util-linux"}, {"nice", "coreutils"}});
  if (!system.has_python_module("pip")) lack.add("pip", "python3-pip");
  if (lack.programs.empty()) return ok(kName, cat("by pip of ", system.find_program("python3")));
  return warning(kName, lack.detail(),
                 "templates cannot have Python packages (`code-interpreter-v1` has)",
                 lack.remedy());
}

Finding check_data_dir(const System& system, const Plan& plan) {
  const std::string& path = plan.data_dir;
  const std::string parent = existing_parent(system, path);
  if (const auto tried = system.try_write_in(parent); !tried) {
    return missing("data directory", cat(parent, ": ", tried.error().message()),
                   "the server does not start",
                   "make it writable, or name another with --data-dir");
  }
  const auto version = system.read(path + "/version");
  if (!version) return ok("data directory", cat(path, ", new"));
  const auto number = parse_number<int>(trim(*version));
  if (!number) {
    return missing("data directory", cat(path, "/version does not hold a number"),
                   "the server does not start",
                   "this is no alcove data directory: name another with --data-dir");
  }
  if (*number > plan.newest_format) {
    return missing(
        "data directory",
        cat(path, " has format ", *number, ", this program reads up to ", plan.newest_format),
        "the server does not start",
        "install the newer alcove that wrote it, or name another with --data-dir");
  }
  return ok("data directory", cat(path, ", format ", *number));
}

Finding check_disk_space(const System& system, const Plan& plan) {
  const std::string parent = existing_parent(system, plan.data_dir);
  const auto space = system.space_of(parent);
  if (!space) {
    return warning("disk space", cat("unknown for ", parent), "", "check it with df");
  }
  std::string detail =
      cat(gibibytes(space->free_bytes), " of ", gibibytes(space->total_bytes), " free in ", parent);
  // The pool's file is already there, at its full size.
  const bool has_pool = system.exists(plan.data_dir + "/pool.img");
  if (space->free_bytes >= kComfortableDisk || (has_pool && space->free_bytes >= kGibibyte)) {
    return ok("disk space", std::move(detail));
  }
  constexpr const char* kRemedy = "free some, or put --data-dir on a larger disk";
  if (!has_pool && space->free_bytes < kLeastDisk) {
    return missing("disk space", std::move(detail), "the base template does not fit", kRemedy);
  }
  return warning("disk space", std::move(detail), "few sandboxes can write much", kRemedy);
}

Finding check_memory(const System& system) {
  uint64_t total = 0;
  uint64_t available = 0;
  const std::string text = system.read("/proc/meminfo").value_or("");
  for (const std::string_view line : split(text, '\n')) {
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos) continue;
    const std::string_view value = trim(line.substr(colon + 1));
    const auto kibibytes = parse_number<uint64_t>(value.substr(0, value.find(' ')));
    if (!kibibytes) continue;
    if (line.starts_with("MemTotal:")) total = *kibibytes << 10;
    if (line.starts_with("MemAvailable:")) available = *kibibytes << 10;
  }
  std::string detail = cat(gibibytes(available), " of ", gibibytes(total), " available");
  if (available >= kComfortableMemory) return ok("memory", std::move(detail));
  return warning(
      "memory", std::move(detail),
      cat("a sandbox of the default size may use ", kComfortableMemory / kMebibyte, " MiB"),
      "end other programs, or add memory or swap");
}

Finding check_descriptors(const System& system) {
  std::string hard;
  const std::string limits = system.read("/proc/self/limits").value_or("");
  for (const std::string_view line : split(limits, '\n')) {
    constexpr std::string_view kName = "Max open files";
    if (!line.starts_with(kName)) continue;
    std::vector<std::string> words;
    for (const std::string_view word : split(line.substr(kName.size()), ' ')) {
      if (!word.empty()) words.emplace_back(word);
    }
    if (words.size() >= 2) hard = words[1];
  }
  const auto number = parse_number<uint64_t>(hard);
  if (hard == "unlimited" || (number && *number >= kComfortableDescriptors)) {
    return ok("open files", cat("at most ", hard));
  }
  return warning("open files", hard.empty() ? "unknown" : cat("at most ", hard),
                 "fewer connections and sandboxes at once",
                 "`ulimit -Hn 1048576` before the start, or LimitNOFILE=1048576 in the unit");
}

Finding check_ports(const System& system, const Plan& plan) {
  std::vector<std::string> free;
  for (const Plan::Address& wanted : plan.listen) {
    const std::string shown = cat(wanted.address, " port ", wanted.port);
    const auto tried = system.try_listen(wanted.address, wanted.port);
    if (tried) {
      free.push_back(shown);
      continue;
    }
    if (is_port_of_server(system, plan.data_dir, wanted.port)) {
      return ok("address", cat(shown, " is in use by the server of ", plan.data_dir));
    }
    return missing("address", tried.error().message(), "the server does not start",
                   "end what listens there, or choose another with --listen");
  }
  return ok("address", cat(join(free, ", "), " free"));
}

}  // namespace alcove::doctor

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/result.h"

namespace alcove::doctor {

// What only trying can tell, because kernels are built and locked down in many ways.
enum class Feature {
  kUserNamespace,
  kPidNamespace,
  kMountNamespace,
  kNetworkNamespace,
  kUtsNamespace,
  kIpcNamespace,
  kCgroupNamespace,
  kTimeNamespace,
  kOverlay,
  kSeccomp,
  kPidfd,
  kNftables,
  kReject,
  kTproxy,
  kQueue,
};

struct Space {
  uint64_t free_bytes = 0;
  uint64_t total_bytes = 0;
};

// The machine as the checks see it; tests bring machines of their own.
class System {
 public:
  virtual ~System() = default;

  // The whole content; nothing if it cannot be read.
  virtual std::optional<std::string> read(const std::string& path) const = 0;
  // To a kernel setting that exists.
  virtual Result<void> write(const std::string& path, const std::string& value) = 0;
  virtual bool exists(const std::string& path) const = 0;
  // Where a program is in PATH or the usual directories; empty if nowhere.
  virtual std::string find_program(const std::string& name) const = 0;
  // Whether the machine's python3 can import it.
  virtual bool has_python_module(const std::string& module) const = 0;
  // Whether this machine's programs find the host name, as getaddrinfo(3) looks for it.
  virtual bool finds_host(const std::string& name) const = 0;
  // The directory of this program: its helpers lie beside it.
  virtual std::string program_dir() const = 0;

  // Really tries, in a process that is thrown away. The error is the kernel's.
  virtual Result<void> try_feature(Feature feature) const = 0;
  // An idmapped mount of a directory that exists.
  virtual Result<void> try_idmap(const std::string& directory) const = 0;
  // A process that is born in a cgroup below this cgroup2 mount.
  virtual Result<void> try_clone_into_cgroup(const std::string& cgroup2) const = 0;
  // A new file in a directory that exists.
  virtual Result<void> try_write_in(const std::string& directory) const = 0;
  // A listening socket, given up at once.
  virtual Result<void> try_listen(const std::string& address, uint16_t port) const = 0;

  // Of the file system that holds the directory.
  virtual std::optional<Space> space_of(const std::string& directory) const = 0;
};

}  // namespace alcove::doctor

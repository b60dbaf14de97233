// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/root_mount.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>

namespace alcove::agent {
namespace {

constexpr std::string_view kElf = "\177ELF";

UniqueFd open_on_root_mount(const std::string& path, uint64_t flags) {
  if (!path.starts_with('/')) return {};
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

enum class Candidate { kProgram, kMissing, kSomethingElse };

Candidate look_at(const std::string& path) {
  const UniqueFd found = find_on_root_mount(path);
  if (!found.valid()) return errno == ENOENT ? Candidate::kMissing : Candidate::kSomethingElse;
  struct stat info{};
  // Looked at first: to open a fifo or a device would be felt by others.
  if (::fstat(found.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Candidate::kSomethingElse;
  const UniqueFd file = open_on_root_mount(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  std::array<char, kElf.size()> head;
  const bool is_elf = file.valid() &&
                      ::read(file.get(), head.data(), head.size()) == ssize_t{head.size()} &&
                      std::string_view(head.data(), head.size()) == kElf;
  return is_elf ? Candidate::kProgram : Candidate::kSomethingElse;
}

}  // namespace

UniqueFd find_on_root_mount(const std::string& path) { return open_on_root_mount(path, O_PATH); }

bool starts_on_root_mount(const SpawnSpec& spec) {
  if (!find_on_root_mount(spec.directory).valid()) return false;
  for (const std::string& candidate : candidate_paths(spec)) {
    // What does not exist is passed over by exec, too.
    if (const auto found = look_at(candidate); found != Candidate::kMissing) {
      return found == Candidate::kProgram;
    }
  }
  return false;
}

}  // namespace alcove::agent

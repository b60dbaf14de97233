// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/root_mount.h"

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace alcove::agent {
namespace {

// More than any linker writes.
constexpr size_t kMostSegments = 64;

UniqueFd open_on_root_mount(const std::string& path, uint64_t flags) {
  if (!path.starts_with('/')) {
    errno = EXDEV;
    return {};
  }
  open_how how{};
  how.flags = flags | O_CLOEXEC;
  how.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS;
  return UniqueFd(
      static_cast<int>(::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how)));
}

// A plain file; to open a fifo or a device would be felt by others.
bool is_file_on_root_mount(const std::string& path) {
  const UniqueFd found = find_on_root_mount(path);
  struct stat info{};
  if (!found.valid() || ::fstat(found.get(), &info) != 0) return false;
  // Something is there: not ENOENT, whatever an earlier call left.
  errno = EACCES;
  return S_ISREG(info.st_mode);
}

template <typename T>
bool read_at(const UniqueFd& file, uint64_t offset, T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  return offset <= INT64_MAX && ::pread(file.get(), &value, sizeof value,
                                        static_cast<off_t>(offset)) == ssize_t{sizeof value};
}

// The kernel opens a program's loader before exec returns: it must lie on the root mount, too.
bool loader_is_on_root_mount(const UniqueFd& file, const Elf64_Phdr& segment) {
  std::array<char, PATH_MAX> path;
  if (segment.p_filesz < 2 || segment.p_filesz > path.size() || segment.p_offset > INT64_MAX) {
    return false;
  }
  const ssize_t size =
      ::pread(file.get(), path.data(), segment.p_filesz, static_cast<off_t>(segment.p_offset));
  if (size != static_cast<ssize_t>(segment.p_filesz) || path[segment.p_filesz - 1] != '\0') {
    return false;
  }
  return is_file_on_root_mount(path.data());
}

bool is_program_of_root_mount(const UniqueFd& file) {
  Elf64_Ehdr head;
  if (!file.valid() || !read_at(file, 0, head)) return false;
  if (std::string_view(reinterpret_cast<const char*>(head.e_ident), SELFMAG) != ELFMAG ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
      head.e_phnum > kMostSegments || head.e_phoff > INT32_MAX) {
    return false;
  }
  for (size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!read_at(file, head.e_phoff + i * sizeof segment, segment)) return false;
    if (segment.p_type == PT_INTERP && !loader_is_on_root_mount(file, segment)) return false;
  }
  return true;
}

enum class Candidate { kProgram, kMissing, kSomethingElse };

Candidate look_at(const std::string& path) {
  if (!is_file_on_root_mount(path)) {
    return errno == ENOENT ? Candidate::kMissing : Candidate::kSomethingElse;
  }
  const UniqueFd file = open_on_root_mount(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
  return is_program_of_root_mount(file) ? Candidate::kProgram : Candidate::kSomethingElse;
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

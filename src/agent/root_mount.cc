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
#include <cstring>
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

// A program's headers. Nearly always all of them lie in the first bytes, which are read at once.
class ProgramFile {
 public:
  explicit ProgramFile(const UniqueFd& file) : file_(file) {
    const ssize_t count = ::pread(file.get(), first_.data(), first_.size(), 0);
    have_ = count < 0 ? 0 : static_cast<size_t>(count);
  }

  bool read(uint64_t offset, char* out, size_t size) const {
    if (offset <= have_ && size <= have_ - offset) {
      std::memcpy(out, first_.data() + offset, size);
      return true;
    }
    return offset <= INT64_MAX && ::pread(file_.get(), out, size, static_cast<off_t>(offset)) ==
                                      static_cast<ssize_t>(size);
  }
  template <typename T>
  bool read(uint64_t offset, T& value) const {
    static_assert(std::is_trivially_copyable_v<T>);
    return read(offset, reinterpret_cast<char*>(&value), sizeof value);
  }

 private:
  const UniqueFd& file_;
  std::array<char, 2048> first_;
  size_t have_ = 0;
};

// The kernel opens a program's loader before exec returns: it must lie on the root mount, too.
bool loader_is_on_root_mount(const ProgramFile& file, const Elf64_Phdr& segment) {
  std::array<char, PATH_MAX> path;
  if (segment.p_filesz < 2 || segment.p_filesz > path.size()) return false;
  if (!file.read(segment.p_offset, path.data(), segment.p_filesz)) return false;
  return path[segment.p_filesz - 1] == '\0' && is_file_on_root_mount(path.data());
}

bool is_program_of_root_mount(const UniqueFd& opened) {
  if (!opened.valid()) return false;
  const ProgramFile file(opened);
  Elf64_Ehdr head;
  if (!file.read(0, head)) return false;
  if (std::string_view(reinterpret_cast<const char*>(head.e_ident), SELFMAG) != ELFMAG ||
      head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
      head.e_phnum > kMostSegments || head.e_phoff > INT32_MAX) {
    return false;
  }
  for (size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr segment;
    if (!file.read(head.e_phoff + i * sizeof segment, segment)) return false;
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

bool stays_on_root_mount(const std::string& path) {
  if (find_on_root_mount(path).valid()) return true;
  // The kernel got as far as this on the root mount. Behind what does not exist dots may lead
  // elsewhere once it was made.
  const bool ends_there =
      errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENAMETOOLONG;
  return ends_there && path.find("/..") == std::string::npos;
}

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

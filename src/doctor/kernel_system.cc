// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "doctor/kernel_system.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "doctor/child_process.h"
#include "doctor/probes.h"
#include "net/listener.h"
#include "sys/file_io.h"

namespace alcove::doctor {
namespace {

class ThisMachine final : public System {
 public:
  std::optional<std::string> read(const std::string& path) const override {
    auto text = sys::read_file(path);
    if (!text) return {};
    return std::move(*text);
  }

  Result<void> write(const std::string& path, const std::string& value) override {
    return sys::write_file(path, value);
  }

  bool exists(const std::string& path) const override { return ::access(path.c_str(), F_OK) == 0; }

  std::string find_program(const std::string& name) const override {
    const char* path = std::getenv("PATH");
    const std::string places = cat(path != nullptr ? path : "", ":/usr/sbin:/usr/bin:/sbin:/bin");
    for (const std::string_view place : split(places, ':')) {
      std::string candidate = cat(place, "/", name);
      if (!place.empty() && ::access(candidate.c_str(), X_OK) == 0) return candidate;
    }
    return {};
  }

  bool has_python_module(const std::string& module) const override {
    const std::string import = cat("import ", module);
    const auto tried = in_child([&import] {
      const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) (void)::dup2(null, fd);
      ::execlp("python3", "python3", "-c", import.c_str(), nullptr);
      return errno;
    });
    return tried.has_value();
  }

  std::string program_dir() const override {
    std::string path(4096, '\0');
    const ssize_t size = ::readlink("/proc/self/exe", path.data(), path.size());
    path.resize(size > 0 ? static_cast<size_t>(size) : 0);
    return path.substr(0, path.rfind('/'));
  }

  Result<void> try_feature(Feature feature) const override {
    return in_child([feature] { return probe(feature); });
  }

  Result<void> try_idmap(const std::string& directory) const override {
    return in_child([&] { return probe_idmap(directory); });
  }

  Result<void> try_clone_into_cgroup(const std::string& cgroup2) const override {
    return in_child([&] { return probe_clone_into_cgroup(cgroup2); });
  }

  Result<void> try_write_in(const std::string& directory) const override {
    // A file without a name leaves nothing behind.
    const UniqueFd fd(::open(directory.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600));
    if (fd.valid()) return {};
    // Not every file system has those.
    const std::string path = cat(directory, "/.alcove-doctor-", ::getpid());
    const UniqueFd named(::open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600));
    if (!named.valid()) return fail_errno(errno, "not writable");
    (void)::unlink(path.c_str());
    return {};
  }

  Result<void> try_listen(const std::string& address, uint16_t port) const override {
    auto listener = net::make_listener(address, port);
    if (!listener) return fail(std::move(listener).error());
    return {};
  }

  std::optional<Space> space_of(const std::string& directory) const override {
    struct statvfs status{};
    if (::statvfs(directory.c_str(), &status) != 0) return {};
    return Space{.free_bytes = uint64_t{status.f_bavail} * status.f_frsize,
                 .total_bytes = uint64_t{status.f_blocks} * status.f_frsize};
  }
};

}  // namespace

std::unique_ptr<System> this_machine() { return std::make_unique<ThisMachine>(); }

}  // namespace alcove::doctor

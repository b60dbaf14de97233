// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/start_program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include "base/strings.h"

namespace alcove::agent {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// posix_spawn's two sets of wishes, given back at the end.
class SpawnSettings {
 public:
  SpawnSettings() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int set_up(const ProgramStart& start) {
    for (size_t i = 0; i < start.fds.size(); ++i) {
      const int to = static_cast<int>(i);
      const int error =
          start.fds[i] < 0
              ? ::posix_spawn_file_actions_addopen(&actions_, to, "/dev/null", O_RDWR, 0)
              : ::posix_spawn_file_actions_adddup2(&actions_, start.fds[i], to);
      if (error != 0) return error;
    }
    const int rest = static_cast<int>(start.fds.size());
    if (const int error = ::posix_spawn_file_actions_addclosefrom_np(&actions_, rest)) return error;
    if (const int error =
            ::posix_spawn_file_actions_addchdir_np(&actions_, start.directory.c_str())) {
      return error;
    }
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    return ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  const posix_spawn_file_actions_t* actions() const { return &actions_; }
  const posix_spawnattr_t* attributes() const { return &attributes_; }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

Result<pid_t> start_program(const ProgramStart& start) {
  SpawnSettings settings;
  if (const int error = settings.set_up(start)) return fail_errno(error, "posix_spawn");
  const auto argv = pointers(start.argv);
  const auto environment = pointers(start.environment);
  pid_t pid = -1;
  if (const int error = ::posix_spawn(&pid, argv[0], settings.actions(), settings.attributes(),
                                      argv.data(), environment.data())) {
    return fail_errno(error, cat("start ", start.argv[0]));
  }
  return pid;
}

}  // namespace alcove::agent

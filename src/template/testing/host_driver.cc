// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "template/testing/host_driver.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/strings.h"

namespace alcove::templates {
namespace {

class HostMachine final : public sandbox::Machine {
 public:
  HostMachine(pid_t pid, uint16_t port)
      : pid_(pid), port_(port), pid_fd_(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0))) {}
  ~HostMachine() override {
    kill();
    (void)destroy();
  }

  std::string record() const override { return std::to_string(pid_); }

  Result<UniqueFd> connect(uint16_t, Family) override {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
        errno != EINPROGRESS) {
      return fail_errno(errno, "connect");
    }
    return fd;
  }

  int exit_fd() const override { return pid_fd_.get(); }
  Result<sandbox::Usage> usage() override { return sandbox::Usage{}; }

  void kill() override {
    if (pid_ > 0) ::kill(pid_, SIGKILL);
  }
  Result<void> destroy() override {
    if (pid_ > 0) ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
    return {};
  }

 private:
  pid_t pid_;
  uint16_t port_;
  UniqueFd pid_fd_;
};

}  // namespace

Result<std::unique_ptr<sandbox::Machine>> HostDriver::boot(const sandbox::BootSpec& spec) {
  {
    const std::lock_guard lock(mutex_);
    boots_.push_back(spec);
  }
  UniqueFd listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (::bind(listener.get(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      ::listen(listener.get(), 16) != 0 ||
      ::getsockname(listener.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return fail_errno(errno, "listen");
  }
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, listener.get(), 3);
  ::posix_spawn_file_actions_addchdir_np(&actions, spec.upper_dir.c_str());
  std::vector<char*> argv = {const_cast<char*>(spec.agent_path.c_str())};
  for (const std::string& arg : spec.agent_args) argv.push_back(const_cast<char*>(arg.c_str()));
  argv.push_back(nullptr);
  char* environment[] = {nullptr};
  pid_t pid = -1;
  const int error = ::posix_spawn(&pid, argv[0], &actions, nullptr, argv.data(), environment);
  ::posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return fail_errno(error, cat("start ", spec.agent_path));
  return std::make_unique<HostMachine>(pid, ntohs(address.sin_port));
}

Result<std::unique_ptr<sandbox::Machine>> HostDriver::adopt(const SandboxId& id,
                                                            const std::string&) {
  return fail(Code::kNotFound, id.str());
}

Result<void> HostDriver::sweep(const std::vector<SandboxId>&) { return {}; }
Result<void> HostDriver::sweep_again(const std::vector<SandboxId>&) { return {}; }

void HostDriver::warm(const std::string&) {}

std::vector<sandbox::BootSpec> HostDriver::boots() const {
  const std::lock_guard lock(mutex_);
  return boots_;
}

}  // namespace alcove::templates

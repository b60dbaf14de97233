// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// alcove-step [NAME=value...] -- command...
//
// Pid 1 of a build jail. Waits for the engine on the listening socket that it finds as fd 3, runs
// the commands one after the other with /bin/sh as root, and sends what they print and how they
// end (step_protocol.h). Static: runs in any root file system.

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "template/step_protocol.h"

namespace alcove::templates {
namespace {

constexpr int kListenFd = 3;
constexpr int kConnectTimeoutMs = 60'000;
constexpr int kCloseTimeoutMs = 10'000;

struct Arguments {
  std::vector<std::string> environment;
  std::vector<std::string> commands;
};

Arguments parse_arguments(int argc, char** argv) {
  Arguments arguments;
  int i = 1;
  for (; i < argc && std::strcmp(argv[i], "--") != 0; ++i) arguments.environment.push_back(argv[i]);
  for (++i; i < argc; ++i) arguments.commands.push_back(argv[i]);
  return arguments;
}

bool wait_readable(int fd, int timeout_ms) {
  pollfd ready{.fd = fd, .events = POLLIN, .revents = 0};
  while (true) {
    const int n = ::poll(&ready, 1, timeout_ms);
    if (n >= 0 || errno != EINTR) return n > 0;
  }
}

UniqueFd accept_engine() {
  ::fcntl(kListenFd, F_SETFD, FD_CLOEXEC);
  if (!wait_readable(kListenFd, kConnectTimeoutMs)) return UniqueFd();
  UniqueFd connection(::accept4(kListenFd, nullptr, nullptr, SOCK_CLOEXEC));
  ::close(kListenFd);
  return connection;
}

class StepServer {
 public:
  StepServer(UniqueFd connection, Arguments arguments)
      : connection_(std::move(connection)), arguments_(std::move(arguments)) {}

  // True if every command ended with status 0.
  bool run() {
    for (size_t i = 0; i < arguments_.commands.size(); ++i) {
      if (!send(StepFrame::kBegin, encode_number(static_cast<uint32_t>(i)))) return false;
      const int status = run_command(arguments_.commands[i]);
      if (status < 0) return false;
      if (!send(StepFrame::kEnd, encode_number(static_cast<uint32_t>(status)))) return false;
      if (status != 0) return false;
    }
    // Nothing may write to the layer any more when the engine takes it.
    if (::getpid() == 1) ::kill(-1, SIGKILL);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    return send(StepFrame::kDone, {});
  }

  // The engine has read everything when it closes its side.
  void wait_for_close() {
    ::shutdown(connection_.get(), SHUT_WR);
    wait_readable(connection_.get(), kCloseTimeoutMs);
  }

 private:
  bool send(StepFrame type, std::string_view payload) {
    const std::string frame = encode_step_frame(type, payload);
    std::string_view left = frame;
    while (!left.empty()) {
      const ssize_t n = ::send(connection_.get(), left.data(), left.size(), MSG_NOSIGNAL);
      if (n > 0) {
        left.remove_prefix(static_cast<size_t>(n));
      } else if (errno != EINTR) {
        return false;
      }
    }
    return true;
  }

  int failed(const char* what) {
    send(StepFrame::kError, cat(what, ": ", std::strerror(errno)));
    return -1;
  }

  // The exit status, 128 + signal, or -1 after an error of our own.
  int run_command(const std::string& command) {
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return failed("pipe2");
    UniqueFd read_end(pipe_fds[0]);
    UniqueFd write_end(pipe_fds[1]);
    const pid_t pid = ::fork();
    if (pid < 0) return failed("fork");
    if (pid == 0) exec_shell(command, write_end.get());
    write_end.reset();
    const UniqueFd pid_fd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    if (!pid_fd.valid()) return failed("pidfd_open");
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    return forward_until_exit(pid, pid_fd.get(), read_end.get());
  }

  // Ends with the shell, not with the pipe: processes in the background may hold it for ever.
  int forward_until_exit(pid_t pid, int pid_fd, int pipe_fd) {
    while (true) {
      pollfd ready[2] = {{.fd = pid_fd, .events = POLLIN, .revents = 0},
                         {.fd = pipe_fd, .events = POLLIN, .revents = 0}};
      if (::poll(ready, 2, -1) < 0 && errno != EINTR) return failed("poll");
      const bool pipe_open = forward_output(pipe_fd);
      if (!pipe_open) pipe_fd = -1;
      if (ready[0].revents == 0) {
        reap_orphans(pid);
        continue;
      }
      int status = 0;
      while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
      }
      if (pipe_fd >= 0) forward_output(pipe_fd);
      return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    }
  }

  // False when every writer has closed the pipe.
  bool forward_output(int fd) {
    if (fd < 0) return false;
    char buffer[32 << 10];
    while (true) {
      const ssize_t n = ::read(fd, buffer, sizeof buffer);
      if (n == 0) return false;
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return true;
      send(StepFrame::kOutput, std::string_view(buffer, static_cast<size_t>(n)));
    }
  }

  // As pid 1 we inherit every orphan. The shell itself is left for its own waitpid().
  static void reap_orphans(pid_t shell) {
    while (true) {
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) return;
      if (info.si_pid == shell) return;
      ::waitpid(info.si_pid, nullptr, WNOHANG);
    }
  }

  [[noreturn]] void exec_shell(const std::string& command, int output_fd) {
    const int null_fd = ::open("/dev/null", O_RDONLY);
    ::dup2(null_fd, 0);
    ::dup2(output_fd, 1);
    ::dup2(output_fd, 2);
    ::setsid();
    std::vector<char*> environment;
    for (std::string& entry : arguments_.environment) environment.push_back(entry.data());
    environment.push_back(nullptr);
    const char* argv[] = {"sh", "-e", "-c", command.c_str(), nullptr};
    ::execve("/bin/sh", const_cast<char**>(argv), environment.data());
    const std::string text = cat("/bin/sh: ", std::strerror(errno), "\n");
    (void)!::write(2, text.data(), text.size());
    ::_exit(127);
  }

  UniqueFd connection_;
  Arguments arguments_;
};

}  // namespace
}  // namespace alcove::templates

int main(int argc, char** argv) {
  using namespace alcove::templates;
  ::signal(SIGPIPE, SIG_IGN);
  alcove::UniqueFd connection = accept_engine();
  if (!connection.valid()) return 1;
  StepServer server(std::move(connection), parse_arguments(argc, argv));
  const bool good = server.run();
  server.wait_for_close();
  return good ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/spawn.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>

#include "base/strings.h"

// clone(2) by the C library's other name for it: the thread sanitizer's wrapper of clone() takes
// the child for one with memory of its own.
extern "C" int __clone(int (*)(void*), void* stack, int flags, void* argument, ...);

namespace alcove::agent {
namespace {

// From linux/ioprio.h, which newer kernels' headers make no C++: IOPRIO_WHO_PROCESS, and
// IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4).
constexpr int kIoPriorityOfProcess = 1;
constexpr int kIoPriorityBestEffort4 = (2 << 13) | 4;

constexpr std::string_view kDefaultPath =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
constexpr char kShell[] = "/bin/sh";
// What the kernel kills first when memory runs out: commands before the agent.
constexpr char kOomScore[] = "100";

enum class Step { kNone, kTerminal, kInput, kGroups, kGid, kUid, kDirectory };

// All the child needs, prepared before, because between clone and exec it shares our memory: it
// must not allocate. Its outcome comes back the same way.
struct ChildPlan {
  std::vector<std::string> candidates;
  std::vector<char*> argv;
  std::vector<char*> shell_argv;  // {"/bin/sh", <candidate>, arguments...}
  std::vector<char*> envp;
  std::vector<gid_t> groups;
  uid_t uid = 0;
  gid_t gid = 0;
  const char* directory = nullptr;
  int input = -1;
  int output = -1;
  int error_output = -1;
  bool has_terminal = false;
  std::string not_found;
  std::string not_executable;

  volatile Step failed_step = Step::kNone;
  volatile int error_number = 0;
};

void write_text(int fd, std::string_view text) { (void)!::write(fd, text.data(), text.size()); }

[[noreturn]] void give_up(ChildPlan& plan, Step step) {
  plan.error_number = errno;
  plan.failed_step = step;
  ::_exit(1);
}

// What follows between clone and exec: only system calls. The credentials are changed by raw
// calls, because those of the C library would change them for all threads of the agent.
int child_main(void* argument) {
  ChildPlan& plan = *static_cast<ChildPlan*>(argument);
  if (plan.has_terminal && (::setsid() < 0 || ::ioctl(plan.input, TIOCSCTTY, /*force=*/0) < 0)) {
    give_up(plan, Step::kTerminal);
  }
  if (::dup2(plan.input, 0) < 0 || ::dup2(plan.output, 1) < 0 || ::dup2(plan.error_output, 2) < 0) {
    give_up(plan, Step::kInput);
  }
  // Nothing of the agent's may be seen by the command.
  if (::syscall(SYS_close_range, 3u, ~0u, 0u) != 0) {
    for (int fd = 3; fd < 65536; ++fd) ::close(fd);
  }

  // Best effort: a kernel or a jail may refuse any of these.
  const int oom = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (oom >= 0) {
    write_text(oom, kOomScore);
    ::close(oom);
  }
  (void)::syscall(SYS_ioprio_set, kIoPriorityOfProcess, 0, kIoPriorityBestEffort4);
  (void)::syscall(SYS_setpriority, PRIO_PROCESS, 0, 0);
  ::umask(022);

  if (::syscall(SYS_setgroups, plan.groups.size(), plan.groups.data()) != 0) {
    give_up(plan, Step::kGroups);
  }
  if (::syscall(SYS_setresgid, plan.gid, plan.gid, plan.gid) != 0) give_up(plan, Step::kGid);
  if (::syscall(SYS_setresuid, plan.uid, plan.uid, plan.uid) != 0) give_up(plan, Step::kUid);
  if (::chdir(plan.directory) != 0) give_up(plan, Step::kDirectory);

  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  ::sigaction(SIGPIPE, &standard, nullptr);  // the only one that the agent ignores
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);

  bool found = false;
  for (std::string& candidate : plan.candidates) {
    ::execve(candidate.c_str(), plan.argv.data(), plan.envp.data());
    if (errno == ENOEXEC) {
      // A script without "#!": shells have always run those, and execvp does.
      plan.shell_argv[1] = candidate.data();
      ::execve(kShell, plan.shell_argv.data(), plan.envp.data());
      found = true;
      break;
    }
    if (errno != ENOENT && errno != ENOTDIR) found = true;
  }
  write_text(2, found ? plan.not_executable : plan.not_found);
  ::_exit(found ? 126 : 127);
}

void fill_plan(ChildPlan& plan, const SpawnSpec& spec) {
  plan.candidates = candidate_paths(spec);
  plan.argv.push_back(const_cast<char*>(spec.command.c_str()));
  plan.shell_argv = {const_cast<char*>(kShell), nullptr};
  for (const std::string& argument : spec.arguments) {
    plan.argv.push_back(const_cast<char*>(argument.c_str()));
    plan.shell_argv.push_back(const_cast<char*>(argument.c_str()));
  }
  plan.argv.push_back(nullptr);
  plan.shell_argv.push_back(nullptr);
  for (const std::string& variable : spec.environment) {
    plan.envp.push_back(const_cast<char*>(variable.c_str()));
  }
  plan.envp.push_back(nullptr);
  plan.groups = spec.user.groups;
  plan.uid = spec.user.uid;
  plan.gid = spec.user.gid;
  plan.directory = spec.directory.c_str();
  plan.not_found = cat(spec.command, ": command not found\n");
  plan.not_executable = cat(spec.command, ": cannot be executed\n");
}

Result<void> refuse_nul_bytes(const SpawnSpec& spec) {
  const auto has_nul = [](const std::string& text) { return text.find('\0') != std::string::npos; };
  if (has_nul(spec.command) || has_nul(spec.directory) ||
      std::any_of(spec.arguments.begin(), spec.arguments.end(), has_nul) ||
      std::any_of(spec.environment.begin(), spec.environment.end(), has_nul)) {
    return fail(Code::kInvalidArgument,
                "command, arguments, environment and cwd must not contain NUL bytes");
  }
  return {};
}

struct Pipe {
  UniqueFd read_end;
  UniqueFd write_end;
};

Result<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return fail_errno(errno, "pipe");
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
}

// The child's ends, to be closed by us once it runs.
struct ChildEnds {
  UniqueFd input;
  UniqueFd output;
  UniqueFd error_output;
};

Result<void> open_pipes(const SpawnSpec& spec, Spawned& ours, ChildEnds& theirs) {
  if (spec.input == SpawnSpec::Input::kPipe) {
    ALCOVE_TRY_ASSIGN(Pipe input, make_pipe());
    ours.input = std::move(input.write_end);
    theirs.input = std::move(input.read_end);
  } else {
    theirs.input.reset(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!theirs.input.valid()) {
      // A root without /dev: a pipe that nobody writes to is at its end, too.
      ALCOVE_TRY_ASSIGN(Pipe empty, make_pipe());
      theirs.input = std::move(empty.read_end);
    }
  }
  ALCOVE_TRY_ASSIGN(Pipe output, make_pipe());
  ALCOVE_TRY_ASSIGN(Pipe error_output, make_pipe());
  ours.output = std::move(output.read_end);
  ours.error_output = std::move(error_output.read_end);
  theirs.output = std::move(output.write_end);
  theirs.error_output = std::move(error_output.write_end);
  return {};
}

Result<void> open_terminal(const SpawnSpec& spec, Spawned& ours, ChildEnds& theirs) {
  UniqueFd master(::open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!master.valid()) return fail_errno(errno, "/dev/ptmx");
  const int unlocked = 0;
  if (::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) return fail_errno(errno, "TIOCSPTLCK");
  // By the master, not by name: a /dev/pts of somebody else cannot get in between.
  theirs.input.reset(::ioctl(master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!theirs.input.valid()) return fail_errno(errno, "TIOCGPTPEER");
  winsize size{};
  size.ws_col = spec.terminal->cols;
  size.ws_row = spec.terminal->rows;
  if (::ioctl(master.get(), TIOCSWINSZ, &size) != 0) return fail_errno(errno, "TIOCSWINSZ");
  // As a login does; without it the user cannot open the terminal by its name.
  (void)!::fchown(theirs.input.get(), spec.user.uid, static_cast<gid_t>(-1));
  ours.terminal = std::move(master);
  return {};
}

Error step_error(const ChildPlan& plan, const SpawnSpec& spec) {
  std::string what;
  switch (plan.failed_step) {
    case Step::kDirectory:
      what = cat("cwd '", spec.directory, "'");
      break;
    case Step::kGroups:
    case Step::kGid:
    case Step::kUid:
      what = cat("become user '", spec.user.name, "'");
      break;
    case Step::kTerminal:
      what = "controlling terminal";
      break;
    case Step::kInput:
    case Step::kNone:
      what = "standard streams";
      break;
  }
  return Error(Code::kInvalidArgument, Error::from_errno(plan.error_number, what).message());
}

// The thread waits until the child has executed or ended (CLONE_VFORK), which is what makes the
// shared memory and the stack below safe. No page tables are copied.
pid_t clone_child(ChildPlan& plan, std::atomic<pid_t>& early_pid) {
  static_assert(sizeof early_pid == sizeof(pid_t));
  // Deep enough for child_main() and the C library's system call wrappers.
  alignas(16) std::array<char, 32 * 1024> stack;
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  // A signal handler must not run in the child while it shares our memory.
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  const pid_t pid =
      __clone(child_main, stack.data() + stack.size(),
              CLONE_VM | CLONE_VFORK | CLONE_PARENT_SETTID | SIGCHLD, &plan, &early_pid);
  const int error_number = errno;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  errno = error_number;
  return pid;
}

}  // namespace

std::vector<std::string> candidate_paths(const SpawnSpec& spec) {
  if (spec.command.empty()) return {};
  if (spec.command.find('/') != std::string::npos) return {spec.command};
  std::string_view path = kDefaultPath;
  for (const std::string& variable : spec.environment) {
    if (variable.starts_with("PATH=")) path = std::string_view(variable).substr(5);
  }
  std::vector<std::string> candidates;
  for (const std::string_view directory : split(path, ':')) {
    candidates.push_back(directory.empty() ? spec.command : cat(directory, "/", spec.command));
  }
  return candidates;
}

Result<Spawned> spawn(const SpawnSpec& spec) {
  std::atomic<pid_t> pid = 0;
  return spawn(spec, pid);
}

Result<Spawned> spawn(const SpawnSpec& spec, std::atomic<pid_t>& pid) {
  ALCOVE_TRY(refuse_nul_bytes(spec));
  Spawned ours;
  ChildEnds theirs;
  ChildPlan plan;
  fill_plan(plan, spec);
  if (spec.terminal) {
    ALCOVE_TRY(open_terminal(spec, ours, theirs));
    plan.has_terminal = true;
    plan.input = plan.output = plan.error_output = theirs.input.get();
  } else {
    ALCOVE_TRY(open_pipes(spec, ours, theirs));
    plan.input = theirs.input.get();
    plan.output = theirs.output.get();
    plan.error_output = theirs.error_output.get();
  }
  ours.pid = clone_child(plan, pid);
  if (ours.pid < 0) {
    return fail(Code::kInvalidArgument, Error::from_errno(errno, "start process").message());
  }
  // The child that failed is reaped as any orphan is.
  if (plan.failed_step != Step::kNone) return fail(step_error(plan, spec));
  return ours;
}

}  // namespace alcove::agent

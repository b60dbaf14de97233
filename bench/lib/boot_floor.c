// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// The kernel's floor of a create, as root on the machine of the server: for each line that it
// reads, the processes, namespaces and file systems of a sandbox, and an exec. It answers with a
// line of two numbers: nanoseconds until the program inside runs, and until it is killed and
// reaped. As in a server, a pair of user and network namespace lies ready, and all this is done in
// a small mount namespace. What a server adds is left out: cgroups, limits, masks, a filter, an
// agent. Everything is in this process's own mount namespace, and gone with it.
#define _GNU_SOURCE
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kFirstId = 1879048192, kReadyFd = 3 };

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void need(int result, const char* what) {
  if (result < 0) err(1, "%s", what);
}

static pid_t start(uint64_t flags) {
  // With CLONE_PARENT, it is that of the caller itself.
  struct clone_args args = {.flags = flags, .exit_signal = flags & CLONE_PARENT ? 0 : SIGCHLD};
  const pid_t pid = (pid_t)syscall(SYS_clone3, &args, sizeof args);
  need(pid, "clone3");
  return pid;
}

static void make_dir(const char* path) { need(mkdir(path, 0755), path); }

static void mount_new(const char* type, const char* at, unsigned long flags, const char* options) {
  need(mount(type, at, type, flags, options), at);
}

static void bind_to(const char* from, const char* to) {
  need(mount(from, to, NULL, MS_BIND, NULL), to);
}

static void copy_program(const char* to) {
  const int in = open("/proc/self/exe", O_RDONLY);
  const int out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0755);
  char piece[65536];
  for (ssize_t count; (count = read(in, piece, sizeof piece)) > 0;)
    if (write(out, piece, (size_t)count) != count) err(1, "%s", to);
  close(in);
  close(out);
}

// A root in memory that holds what the boots need, and nothing of the machine's.
static void enter_lean_root(void) {
  need(unshare(CLONE_NEWNS), "unshare");
  need(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL), "private mounts");
  mount_new("tmpfs", "/tmp", 0, "mode=755");
  for (const char** dir =
           (const char*[]){"layer", "uppers", "overlay", "root", "dev", "proc", "sys", NULL};
       *dir != NULL; ++dir) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/%s", *dir);
    make_dir(path);
  }
  for (const char** dir = (const char*[]){"proc", "sys", "dev", "run", NULL}; *dir != NULL; ++dir) {
    char path[64];
    snprintf(path, sizeof path, "/tmp/layer/%s", *dir);
    make_dir(path);
  }
  copy_program("/tmp/agent");
  need(chdir("/tmp"), "chdir");
  need((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
  need(umount2(".", MNT_DETACH), "umount");
  need(chdir("/"), "chdir");
  mount_new("proc", "/proc", 0, NULL);
  mount_new("sysfs", "/sys", 0, NULL);
}

static void write_map(pid_t pid, const char* name) {
  char path[64];
  char line[64];
  snprintf(path, sizeof path, "/proc/%d/%s", pid, name);
  const int size = snprintf(line, sizeof line, "0 %u 65536\n", (unsigned)kFirstId);
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, line, (size_t)size) != size) err(1, "%s", path);
  close(fd);
}

static int open_namespace(pid_t pid, const char* name) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/ns/%s", pid, name);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  need(fd, path);
  return fd;
}

struct Pair {
  int user;
  int net;
};

static struct Pair make_pair(void) {
  const pid_t holder = start(CLONE_NEWUSER | CLONE_NEWNET);
  if (holder == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) pause();
  }
  write_map(holder, "uid_map");
  write_map(holder, "gid_map");
  const struct Pair pair = {open_namespace(holder, "user"), open_namespace(holder, "net")};
  kill(holder, SIGKILL);
  waitpid(holder, NULL, 0);
  return pair;
}

// The second process: pid 1 of the sandbox.
static void become_guest(void) {
  // So that nothing is left when the benchmark is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  need(setsid(), "setsid");
  need(sethostname("bench", 5), "sethostname");
  bind_to("/overlay", "/root");
  mount_new("proc", "/root/proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount_new("sysfs", "/root/sys", MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_RDONLY, NULL);
  bind_to("/dev", "/root/dev");
  mount_new("devpts", "/root/dev/pts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666");
  mount_new("tmpfs", "/root/dev/shm", MS_NOSUID | MS_NODEV, NULL);
  mount_new("mqueue", "/root/dev/mqueue", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL);
  mount_new("tmpfs", "/root/run", MS_NOSUID | MS_NODEV, NULL);
  const int at = open("/root/run/agent", O_WRONLY | O_CREAT | O_CLOEXEC, 0444);
  need(at, "/root/run/agent");
  bind_to("/agent", "/root/run/agent");
  need(chdir("/root"), "chdir");
  need((int)syscall(SYS_pivot_root, ".", "."), "pivot_root");
  need(umount2(".", MNT_DETACH), "umount");
  need(chdir("/"), "chdir");
  execl("/run/agent", "agent", "--ready", NULL);
  err(1, "exec");
}

// The first process: what only the host's root may do.
static void boot(struct Pair pair, int number) {
  char upper[32];
  char work[32];
  char options[128];
  snprintf(upper, sizeof upper, "/uppers/%d", number);
  snprintf(work, sizeof work, "/uppers/%d.work", number);
  snprintf(options, sizeof options, "lowerdir=/layer,upperdir=%s,workdir=%s", upper, work);
  for (const char** dir = (const char*[]){upper, work, NULL}; *dir != NULL; ++dir) {
    make_dir(*dir);
    need(chown(*dir, kFirstId, kFirstId), *dir);
  }
  need(mount("overlay", "/overlay", "overlay", MS_NODEV, options), "overlay");
  mount_new("tmpfs", "/dev", MS_NOSUID, "mode=755,uid=1879048192,gid=1879048192");
  for (const char** dir = (const char*[]){"/dev/pts", "/dev/shm", "/dev/mqueue", NULL};
       *dir != NULL; ++dir)
    make_dir(*dir);
  need(setns(pair.user, CLONE_NEWUSER), "enter the user namespace");
  need(setns(pair.net, CLONE_NEWNET), "enter the network namespace");
  need(setgroups(0, NULL), "setgroups");
  need(setresgid(0, 0, 0), "setresgid");
  need(setresuid(0, 0, 0), "setresuid");
  need(unshare(CLONE_NEWTIME), "unshare the clocks");
  // A child of the benchmark, which reaps it.
  const pid_t guest = start(CLONE_PARENT | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWUTS |
                            CLONE_NEWIPC | CLONE_NEWCGROUP);
  if (guest == 0) become_guest();
  char text[16];
  const int size = snprintf(text, sizeof text, "%d\n", guest);
  if (write(kReadyFd, text, (size_t)size) != size) err(1, "write");
  _exit(0);
}

static void reap(pid_t pid, int wanted) {
  int status = 0;
  if (waitpid(pid, &status, 0) != pid) err(1, "waitpid");
  if (status != wanted) errx(1, "a process of a boot ended with %d", status);
}

static void measure(int number) {
  int pipe_fds[2];
  need(pipe2(pipe_fds, O_CLOEXEC), "pipe");
  const struct Pair pair = make_pair();
  const long long begin = now();
  const pid_t first = start(CLONE_NEWNS);
  if (first == 0) {
    need(dup2(pipe_fds[1], kReadyFd), "dup2");
    boot(pair, number);
  }
  close(pipe_fds[1]);
  // The guest's process id, and the letter that its program writes.
  char heard[32] = "";
  for (size_t size = 0; strchr(heard, '\n') == NULL || strchr(heard, 'r') == NULL;) {
    const ssize_t count = read(pipe_fds[0], heard + size, sizeof heard - 1 - size);
    if (count <= 0) errx(1, "a boot failed");
    size += (size_t)count;
  }
  const long long ready = now();
  const pid_t guest = atoi(heard[0] == 'r' ? heard + 1 : heard);
  reap(first, 0);
  const long long end = now();
  kill(guest, SIGKILL);
  reap(guest, SIGKILL);
  printf("%lld %lld\n", ready - begin, now() - end);
  fflush(stdout);
  close(pipe_fds[0]);
  close(pair.user);
  close(pair.net);
}

int main(int argc, char** argv) {
  if (argc == 2 && strcmp(argv[1], "--ready") == 0) {
    if (write(kReadyFd, "r", 1) != 1) return 1;
    for (;;) pause();
  }
  // What each boot does with descriptor 3 must not hit one of ours.
  while (dup(0) <= kReadyFd) continue;
  enter_lean_root();
  char line[16];
  for (int number = 0; fgets(line, sizeof line, stdin) != NULL; ++number) measure(number);
  return 0;
}

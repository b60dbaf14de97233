// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors

// The kernel's floor, measured inside a sandbox:
//   floor spawn N ARGV...        N times vfork + exec + wait: nanoseconds of each
//   floor rate JOBS N ARGV...    the same in JOBS processes at once: runs per second
//   floor pipe BYTES ARGV...     a command's output to TCP: bytes per second
//   floor receive BYTES FILE     TCP into a file: bytes per second
//   floor send FILE              a file to TCP with sendfile and one splice hop: bytes per second
//   floor list N DIR             N times readdir, and lstat and llistxattr of each entry:
//                                nanoseconds of each
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

extern char** environ;

enum { kPiece = 1 << 20, kHop = 1 << 16 };
static char piece[kPiece];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

static void finish(pid_t child) {
  int status;
  if (waitpid(child, &status, 0) != child || status != 0) errx(1, "a child failed: %d", status);
}

static pid_t start(char** argv, int out) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (out >= 0) posix_spawn_file_actions_adddup2(&actions, out, 1);
  pid_t child;
  if (posix_spawn(&child, argv[0], &actions, NULL, argv, environ) != 0)
    errx(1, "cannot start %s", argv[0]);
  posix_spawn_file_actions_destroy(&actions);
  return child;
}

static pid_t fork_or_die(void) {
  pid_t child = fork();
  if (child < 0) err(1, "fork");
  return child;
}

// Two connected TCP sockets over loopback.
static void tcp_pair(int ends[2]) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t size = sizeof at;
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&at, size) || listen(listener, 1) ||
      getsockname(listener, (struct sockaddr*)&at, &size))
    err(1, "listen");
  ends[0] = socket(AF_INET, SOCK_STREAM, 0);
  if (connect(ends[0], (struct sockaddr*)&at, size)) err(1, "connect");
  ends[1] = accept(listener, NULL, NULL);
  close(listener);
}

static long long copy(int from, int to) {
  long long total = 0;
  ssize_t count;
  while ((count = read(from, piece, kPiece)) > 0) {
    for (ssize_t done = 0; to >= 0 && done < count;) {
      ssize_t wrote = write(to, piece + done, count - done);
      if (wrote < 0) err(1, "write");
      done += wrote;
    }
    total += count;
  }
  if (count < 0) err(1, "read");
  return total;
}

static void spawn_loop(long n, char** argv) {
  for (long i = 0; i < n; ++i) {
    double begin = now();
    finish(start(argv, -1));
    printf("%.0f\n", (now() - begin) * 1e9);
  }
}

static void rate(int jobs, long n, char** argv) {
  double begin = now();
  pid_t children[jobs];
  for (int j = 0; j < jobs; ++j) {
    if ((children[j] = fork_or_die()) == 0) {
      for (long i = 0; i < n; ++i) finish(start(argv, -1));
      _exit(0);
    }
  }
  for (int j = 0; j < jobs; ++j) finish(children[j]);
  printf("%.1f\n", jobs * n / (now() - begin));
}

static void pipe_to_tcp(long long bytes, char** argv) {
  int ends[2], out[2];
  tcp_pair(ends);
  if (pipe2(out, O_CLOEXEC)) err(1, "pipe");
  double begin = now();
  pid_t reader = fork_or_die();
  if (reader == 0) {
    close(ends[0]);
    close(out[0]);
    close(out[1]);
    _exit(copy(ends[1], -1) != bytes);
  }
  pid_t writer = start(argv, out[1]);
  close(out[1]);
  copy(out[0], ends[0]);
  shutdown(ends[0], SHUT_WR);
  finish(writer);
  finish(reader);
  printf("%.0f\n", bytes / (now() - begin));
}

static void receive(long long bytes, const char* path) {
  int ends[2];
  tcp_pair(ends);
  double begin = now();
  pid_t writer = fork_or_die();
  if (writer == 0) {
    close(ends[1]);
    for (long long left = bytes; left > 0;) {
      ssize_t wrote = write(ends[0], piece, left < kPiece ? left : kPiece);
      if (wrote < 0) err(1, "write");
      left -= wrote;
    }
    _exit(0);
  }
  close(ends[0]);
  int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file < 0) err(1, "%s", path);
  if (copy(ends[1], file) != bytes) errx(1, "short");
  close(file);
  finish(writer);
  printf("%.0f\n", bytes / (now() - begin));
}

static void hop(int from, int to) {
  int middle[2];
  if (pipe(middle)) err(1, "pipe");
  ssize_t count;
  while ((count = splice(from, NULL, middle[1], NULL, kHop, SPLICE_F_MOVE)) > 0) {
    for (ssize_t sent; count > 0; count -= sent) {
      if ((sent = splice(middle[0], NULL, to, NULL, count, SPLICE_F_MOVE)) <= 0) err(1, "splice");
    }
  }
  if (count < 0) err(1, "splice");
}

static void send_file(const char* path) {
  int file = open(path, O_RDONLY);
  struct stat facts;
  if (file < 0 || fstat(file, &facts)) err(1, "%s", path);
  int first[2], second[2];
  tcp_pair(first);
  tcp_pair(second);
  double begin = now();
  pid_t relay = fork_or_die();
  if (relay == 0) {
    close(first[0]);
    close(second[1]);
    hop(first[1], second[0]);
    _exit(0);
  }
  pid_t reader = fork_or_die();
  if (reader == 0) {
    close(first[0]);
    close(first[1]);
    close(second[0]);
    _exit(copy(second[1], -1) != facts.st_size);
  }
  close(second[0]);
  for (long long left = facts.st_size; left > 0;) {
    ssize_t sent = sendfile(first[0], file, NULL, left);
    if (sent <= 0) err(1, "sendfile");
    left -= sent;
  }
  shutdown(first[0], SHUT_WR);
  finish(relay);
  finish(reader);
  printf("%.0f\n", facts.st_size / (now() - begin));
}

static void list(long n, const char* path) {
  char names[256];
  struct stat facts;
  if (chdir(path)) err(1, "%s", path);
  for (long i = 0; i < n; ++i) {
    double begin = now();
    DIR* dir = opendir(".");
    if (!dir) err(1, "%s", path);
    for (struct dirent* entry; (entry = readdir(dir));) {
      if (lstat(entry->d_name, &facts)) err(1, "%s", entry->d_name);
      if (llistxattr(entry->d_name, names, sizeof names) < 0) err(1, "%s", entry->d_name);
    }
    closedir(dir);
    printf("%.0f\n", (now() - begin) * 1e9);
  }
}

int main(int argc, char** argv) {
  const char* what = argc > 2 ? argv[1] : "";
  if (!strcmp(what, "spawn") && argc > 3) {
    spawn_loop(atol(argv[2]), argv + 3);
  } else if (!strcmp(what, "rate") && argc > 4) {
    rate(atoi(argv[2]), atol(argv[3]), argv + 4);
  } else if (!strcmp(what, "pipe") && argc > 3) {
    pipe_to_tcp(atoll(argv[2]), argv + 3);
  } else if (!strcmp(what, "receive") && argc > 3) {
    receive(atoll(argv[2]), argv[3]);
  } else if (!strcmp(what, "send")) {
    send_file(argv[2]);
  } else if (!strcmp(what, "list") && argc > 3) {
    list(atol(argv[2]), argv[3]);
  } else {
    errx(2, "see the top of floor.c");
  }
}

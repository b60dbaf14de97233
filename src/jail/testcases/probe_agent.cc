// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// Stands in for the agent in tests of the jail. Serves fd 3: a connection brings commands, one per
// line, up to an empty line, and gets what they print. They run in a forked child, except in a
// connection that starts with "pid1". With --whoami it prints its ids, with --mount-proc the result
// of mounting a /proc.
//
//   sys NR ARGS...     raw system call; an argument is a number or '"text' -> "RESULT ERRNO"
//   read PATH          -> the content, or "error ERRNO"
//   write PATH TEXT    -> "ok" or "error ERRNO"
//   ls PATH            -> names with link targets
//   stat PATH          -> "MODE UID GID", mode in octal, or "error ERRNO"
//   eat MIB            touches memory -> "ate"
//   forks N            starts up to N idle children -> "COUNT ERRNO", then ends them
//   deadlock           a process waits for a file system of its own for ever -> "ERRNO"
//   run PATH ARG       -> what the program prints
#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "sys/testing/deadlocked_fuse.h"

namespace {

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> words;
  size_t at = 0;
  while (at < line.size()) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

std::string error_text() { return "error " + std::to_string(errno) + "\n"; }

std::string raw_call(const std::vector<std::string>& words) {
  long arguments[7] = {};
  for (size_t i = 0; i < words.size() && i < 7; ++i) {
    const std::string& word = words[i];
    arguments[i] = word[0] == '"' ? reinterpret_cast<long>(word.c_str() + 1)
                                  : std::strtol(word.c_str(), nullptr, 0);
  }
  errno = 0;
  const long result = ::syscall(arguments[0], arguments[1], arguments[2], arguments[3],
                                arguments[4], arguments[5], arguments[6]);
  return std::to_string(result) + " " + std::to_string(errno) + "\n";
}

std::string read_all(int fd) {
  std::string content;
  char buffer[4096];
  ssize_t got;
  while ((got = ::read(fd, buffer, sizeof buffer)) > 0) content.append(buffer, got);
  return content;
}

std::string read_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return error_text();
  const std::string content = read_all(fd);
  ::close(fd);
  return content;
}

std::string write_path(const std::string& path, const std::string& text) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd < 0) return error_text();
  const bool ok = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const std::string answer = ok ? "ok\n" : error_text();
  ::close(fd);
  return answer;
}

std::string list(const std::string& path) {
  DIR* dir = ::opendir(path.c_str());
  if (dir == nullptr) return error_text();
  std::string out;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    char target[4096];
    const ssize_t size = ::readlink((path + "/" + name).c_str(), target, sizeof target);
    out += name + (size > 0 ? " -> " + std::string(target, size) : "") + "\n";
  }
  ::closedir(dir);
  return out;
}

std::string stat_path(const std::string& path) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) return error_text();
  char text[64];
  std::snprintf(text, sizeof text, "%o %u %u\n", status.st_mode, status.st_uid, status.st_gid);
  return text;
}

std::string eat(size_t mebibytes) {
  volatile char* memory = nullptr;
  for (size_t i = 0; i < mebibytes << 20; i += 4096) {
    if (i % (1 << 20) == 0) {
      memory = static_cast<volatile char*>(std::malloc(1 << 20));
      if (memory == nullptr) return error_text();
    }
    memory[i % (1 << 20)] = 1;
  }
  return "ate\n";
}

std::string forks(int count) {
  std::vector<pid_t> children;
  int error = 0;
  while (static_cast<int>(children.size()) < count) {
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    if (child < 0) {
      error = errno;
      break;
    }
    children.push_back(child);
  }
  for (const pid_t child : children) ::kill(child, SIGKILL);
  for (const pid_t child : children) ::waitpid(child, nullptr, 0);
  return std::to_string(children.size()) + " " + std::to_string(error) + "\n";
}

std::string run(const std::string& path, const std::string& argument) {
  int fds[2];
  if (::pipe2(fds, O_CLOEXEC) != 0) return error_text();
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(fds[1], 1);
    ::execl(path.c_str(), path.c_str(), argument.c_str(), nullptr);
    ::dprintf(1, "error %d\n", errno);
    ::_exit(127);
  }
  ::close(fds[1]);
  const std::string out = read_all(fds[0]);
  ::close(fds[0]);
  ::waitpid(child, nullptr, 0);
  return out;
}

std::string perform(const std::string& line) {
  const std::vector<std::string> words = words_of(line);
  auto word = [&](size_t i) { return i < words.size() ? words[i] : std::string(); };
  if (word(0) == "sys") return raw_call({words.begin() + 1, words.end()});
  if (word(0) == "read") return read_path(word(1));
  if (word(0) == "write")
    return write_path(word(1), line.substr(line.find(word(1)) + word(1).size() + 1));
  if (word(0) == "ls") return list(word(1));
  if (word(0) == "stat") return stat_path(word(1));
  if (word(0) == "eat") return eat(std::strtoul(word(1).c_str(), nullptr, 10));
  if (word(0) == "forks") return forks(std::atoi(word(1).c_str()));
  if (word(0) == "deadlock") {
    return std::to_string(alcove::sys::testing::deadlock_in_fuse("/tmp/fs", 0)) + "\n";
  }
  if (word(0) == "run") return run(word(1), word(2));
  return "unknown command\n";
}

void send_all(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t now = ::send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (now <= 0) return;
    sent += now;
  }
}

void perform_all(int connection, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) send_all(connection, perform(line));
}

void serve(int connection) {
  std::string text;
  char buffer[4096];
  while (text.find("\n\n") == std::string::npos) {
    const ssize_t got = ::recv(connection, buffer, sizeof buffer, 0);
    if (got <= 0) return;
    text.append(buffer, got);
  }
  std::vector<std::string> lines;
  for (size_t at = 0; text[at] != '\n';) {
    const size_t end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  if (!lines.empty() && lines[0] == "pid1") {
    lines.erase(lines.begin());
    return perform_all(connection, lines);
  }
  const pid_t child = ::fork();
  if (child == 0) {
    perform_all(connection, lines);
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) {
    send_all(connection, "signal " + std::to_string(WTERMSIG(status)) + "\n");
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--whoami") == 0) {
    std::printf("uid %u euid %u\n", ::getuid(), ::geteuid());
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "--mount-proc") == 0) {
    const int result = ::mount("proc", "/proc", "proc", 0, nullptr);
    std::printf("pid %d: %d %d\n", ::getpid(), result, result == 0 ? 0 : errno);
    return 0;
  }
  for (;;) {
    const int connection = ::accept4(3, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection < 0) continue;
    serve(connection);
    ::close(connection);
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
  }
}

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/spawn.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/testing/temp_dir.h"

namespace alcove::agent {
namespace {

struct Outcome {
  std::string output;
  std::string error_output;
  int status = 0;
};

std::string read_to_end(int fd) {
  std::string all;
  char buffer[4096];
  for (;;) {
    pollfd ready{fd, POLLIN, 0};
    ::poll(&ready, 1, -1);
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count <= 0) return all;
    all.append(buffer, static_cast<size_t>(count));
  }
}

Outcome finish(Spawned& spawned) {
  Outcome outcome;
  spawned.input.reset();
  outcome.output =
      read_to_end(spawned.terminal.valid() ? spawned.terminal.get() : spawned.output.get());
  if (spawned.error_output.valid()) outcome.error_output = read_to_end(spawned.error_output.get());
  EXPECT_EQ(::waitpid(spawned.pid, &outcome.status, 0), spawned.pid);
  return outcome;
}

Outcome run(const SpawnSpec& spec) {
  auto spawned = spawn(spec);
  EXPECT_TRUE(spawned) << spawned.error().message();
  if (!spawned) return {};
  return finish(*spawned);
}

SpawnSpec shell(const std::string& script) {
  SpawnSpec spec;
  spec.command = "/bin/sh";
  spec.arguments = {"-c", script};
  spec.environment = {"PATH=/usr/bin:/bin"};
  spec.user = {"root", 0, 0, "/", {0}};
  spec.directory = "/";
  return spec;
}

TEST(Spawn, GivesOutputsAndStatus) {
  const Outcome outcome = run(shell("echo out; echo err >&2; exit 3"));
  EXPECT_EQ(outcome.output, "out\n");
  EXPECT_EQ(outcome.error_output, "err\n");
  EXPECT_EQ(WEXITSTATUS(outcome.status), 3);
}

TEST(Spawn, LeaksNoDescriptorAndNoVariable) {
  int leak[2];
  ASSERT_EQ(::pipe(leak), 0);
  const Outcome outcome = run(shell("ls /proc/self/fd | wc -l; env"));
  ::close(leak[0]);
  ::close(leak[1]);
  // 0, 1, 2 and the directory that ls reads.
  EXPECT_EQ(outcome.output.substr(0, 2), "4\n");
  EXPECT_EQ(outcome.output.find("HOME="), std::string::npos);
}

TEST(Spawn, SetsUserGroupsUmaskAndOomScore) {
  SpawnSpec spec = shell("id -u; id -g; id -G; umask; cat /proc/self/oom_score_adj; pwd");
  spec.user = {"user", 1000, 1001, "/", {1001, 27}};
  spec.directory = "/tmp";
  const Outcome outcome = run(spec);
  EXPECT_EQ(outcome.output, "1000\n1001\n1001 27\n0022\n100\n/tmp\n");
  // The agent itself keeps its own score.
  EXPECT_NE(testing::read_text("/proc/self/oom_score_adj"), "100\n");
}

TEST(Spawn, ResetsSignals) {
  struct sigaction before{};
  struct sigaction ignore{};
  ignore.sa_handler = SIG_IGN;
  ::sigaction(SIGPIPE, &ignore, &before);
  const Outcome outcome = run(shell("grep -E 'Sig(Blk|Ign)' /proc/self/status"));
  ::sigaction(SIGPIPE, &before, nullptr);
  EXPECT_EQ(outcome.output, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

TEST(Spawn, MissingCommandIsAnExitCode) {
  SpawnSpec spec = shell("");
  spec.command = "no-such-command";
  const Outcome missing = run(spec);
  EXPECT_EQ(WEXITSTATUS(missing.status), 127);
  EXPECT_NE(missing.error_output.find("no-such-command"), std::string::npos);
  spec.command = "/tmp";
  const Outcome directory = run(spec);
  EXPECT_EQ(WEXITSTATUS(directory.status), 126);
  spec.command = "";
  EXPECT_EQ(WEXITSTATUS(run(spec).status), 127);
}

TEST(Spawn, FindsCommandsInTheRequestsPath) {
  const testing::TempDir dir;
  testing::write_text(dir / "tool", "echo tool $1\n");
  ::chmod((dir / "tool").c_str(), 0755);
  SpawnSpec spec = shell("");
  spec.command = "tool";
  spec.arguments = {"arg"};
  spec.environment = {"PATH=/nonexistent:" + dir.path()};
  // Without "#!" it is run by the shell.
  EXPECT_EQ(run(spec).output, "tool arg\n");
}

TEST(Spawn, DirectoryIsEnteredAsTheUser) {
  const testing::TempDir dir;
  ::chmod(dir.path().c_str(), 0700);
  SpawnSpec spec = shell("pwd");
  spec.directory = dir.path();
  EXPECT_EQ(run(spec).output, dir.path() + "\n");
  spec.user = {"user", 1000, 1000, "/", {1000}};
  const auto refused = spawn(spec);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code(), Code::kInvalidArgument);
  EXPECT_NE(refused.error().message().find(dir.path()), std::string::npos);
  spec.directory = "/no/such/place";
  EXPECT_EQ(spawn(spec).error().code(), Code::kInvalidArgument);
  while (::waitpid(-1, nullptr, 0) > 0) {
  }
}

TEST(Spawn, StandardInputIsAPipeOrNothing) {
  SpawnSpec spec = shell("cat; echo end");
  EXPECT_EQ(run(spec).output, "end\n");
  spec.input = SpawnSpec::Input::kPipe;
  auto spawned = spawn(spec);
  ASSERT_TRUE(spawned);
  ASSERT_EQ(::write(spawned->input.get(), "hello\n", 6), 6);
  EXPECT_EQ(finish(*spawned).output, "hello\nend\n");
}

TEST(Spawn, RefusesNulBytes) {
  SpawnSpec spec = shell(std::string("a\0b", 3));
  EXPECT_EQ(spawn(spec).error().code(), Code::kInvalidArgument);
}

TEST(Spawn, TerminalHasItsSizeAndControlsTheSession) {
  SpawnSpec spec = shell("stty size; tty; test -t 0 && test -t 2 && echo yes </dev/tty; exit 5");
  spec.terminal = TerminalSize{80, 24};
  const Outcome outcome = run(spec);
  EXPECT_TRUE(outcome.output.starts_with("24 80\r\n/dev/pts/")) << outcome.output;
  EXPECT_TRUE(outcome.output.ends_with("yes\r\n")) << outcome.output;
  EXPECT_EQ(WEXITSTATUS(outcome.status), 5);
}

}  // namespace
}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/local_terminal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>
#include <utmp.h>

#include <csignal>
#include <cstdlib>
#include <functional>

#include "base/unique_fd.h"

namespace alcove::cli {
namespace {

// A terminal for a child process, seen from its other end.
class Terminal {
 public:
  explicit Terminal(winsize size) {
    int outer = -1;
    int inner = -1;
    EXPECT_EQ(::openpty(&outer, &inner, nullptr, nullptr, &size), 0);
    outer_.reset(outer);
    inner_.reset(inner);
  }

  // Runs `work` in a child that has the terminal as its own; how that ended.
  int run(const std::function<int()>& work) const {
    const pid_t child = ::fork();
    if (child == 0) {
      (void)::login_tty(::dup(inner_.get()));
      std::_Exit(work());
    }
    int status = 0;
    EXPECT_EQ(::waitpid(child, &status, 0), child);
    return status;
  }
  bool is_raw() const {
    termios settings{};
    EXPECT_EQ(::tcgetattr(inner_.get(), &settings), 0);
    return (settings.c_lflag & (ICANON | ECHO | ISIG)) == 0;
  }

 private:
  UniqueFd outer_;
  UniqueFd inner_;
};

constexpr winsize kSize{.ws_row = 33, .ws_col = 101, .ws_xpixel = 0, .ws_ypixel = 0};

TEST(LocalTerminal, SizeIsTheTerminals) {
  const auto size_in = [](winsize size, TerminalSize expected) {
    return Terminal(size).run([&] { return LocalTerminal::size() == expected ? 0 : 1; });
  };
  EXPECT_EQ(size_in(kSize, {.columns = 101, .rows = 33}), 0);
  EXPECT_EQ(size_in({}, {.columns = 80, .rows = 24}), 0) << "one that does not know it";
}

TEST(LocalTerminal, PipesAreNone) {
  const int status = Terminal(kSize).run([] {
    if (!LocalTerminal::is_there()) return 1;
    int ends[2];
    if (::pipe(ends) != 0 || ::dup2(ends[0], STDIN_FILENO) < 0) return 2;
    LocalTerminal terminal;
    return LocalTerminal::is_there() || terminal.take() ? 3 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(LocalTerminal, SettingsComeBack) {
  const Terminal outside(kSize);
  const auto is_raw = [&] { return outside.is_raw(); };
  const int status = outside.run([&] {
    {
      LocalTerminal terminal;
      if (is_raw() || !terminal.take() || !is_raw()) return 1;
      // Again, as after a stop that nobody announced.
      if (!terminal.take()) return 2;
      terminal.give_back();
      if (is_raw() || !terminal.take() || !is_raw()) return 3;
    }
    return is_raw() ? 4 : 0;
  });
  EXPECT_EQ(status, 0);
}

TEST(LocalTerminal, SettingsComeBackAfterACrash) {
  for (const int number : {SIGSEGV, SIGABRT}) {
    const Terminal outside(kSize);
    const int status = outside.run([&] {
      const rlimit none{};
      (void)::setrlimit(RLIMIT_CORE, &none);
      LocalTerminal terminal;
      if (!terminal.take() || !outside.is_raw()) return 1;
      (void)std::raise(number);
      return 2;
    });
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == number) << status;
    EXPECT_FALSE(outside.is_raw());
  }
}

TEST(LocalTerminal, InTheBackgroundItIsLeftAlone) {
  const Terminal outside(kSize);
  const int status = outside.run([&] {
    LocalTerminal terminal;
    if (!terminal.take()) return 1;
    // The terminal goes to a group of its own, as if a shell had put us in the background.
    const pid_t other = ::fork();
    if (other == 0) {
      ::pause();
      std::_Exit(0);
    }
    (void)::setpgid(other, other);
    const bool given = ::tcsetpgrp(STDIN_FILENO, other) == 0;
    terminal.give_back();
    const bool untouched = outside.is_raw();
    (void)::kill(other, SIGKILL);
    (void)::waitpid(other, nullptr, 0);
    return given && untouched ? 0 : 2;
  });
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace alcove::cli

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "cli/local_terminal.h"

#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

#include "cli/standard_io.h"

namespace alcove::cli {
namespace {

// Not members, because the handler of a crash reads them.
termios saved_settings;
volatile std::sig_atomic_t is_taken = 0;

constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

// Attributes, cursor, keypad and cursor keys, bracketed paste, mouse reports, the second screen.
constexpr std::string_view kModesOff =
    "\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?47l";

// Setting a terminal from the background stops the process that does it.
bool in_background() {
  const pid_t owner = ::tcgetpgrp(STDIN_FILENO);
  return owner > 0 && owner != ::getpgrp();
}

// Calls only what a signal handler may call.
void restore_settings() {
  if (is_taken == 0) return;
  is_taken = 0;
  // At once: waiting for the output to drain could last forever.
  if (!in_background()) (void)::tcsetattr(STDIN_FILENO, TCSANOW, &saved_settings);
}

void on_crash(int number) {
  restore_settings();
  // Comes after the return, to the default handler.
  (void)std::raise(number);
}

void restore_on_crash() {
  struct sigaction action{};
  action.sa_handler = on_crash;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : kCrashes) (void)::sigaction(number, &action, nullptr);
}

}  // namespace

bool LocalTerminal::is_there() { return ::isatty(STDIN_FILENO) == 1; }

TerminalSize LocalTerminal::size() {
  winsize found{};
  if (::ioctl(STDIN_FILENO, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0) {
    return {};
  }
  return {.columns = found.ws_col, .rows = found.ws_row};
}

Result<void> LocalTerminal::take() {
  termios settings{};
  if (::tcgetattr(STDIN_FILENO, &settings) != 0) {
    return fail_errno(errno, "read the terminal's settings");
  }
  if (is_taken == 0) saved_settings = settings;
  ::cfmakeraw(&settings);
  restore_on_crash();
  is_taken = 1;
  while (::tcsetattr(STDIN_FILENO, TCSANOW, &settings) != 0) {
    if (errno != EINTR) return fail_errno(errno, "set the terminal");
  }
  return {};
}

void LocalTerminal::give_back() { restore_settings(); }

void LocalTerminal::break_off() {
  if (is_taken == 0) return;
  give_back();
  if (::isatty(STDOUT_FILENO) != 1) return;
  (void)write_all(STDOUT_FILENO, kModesOff);
  (void)write_all(STDOUT_FILENO, "\n");
}

void LocalTerminal::stop_process() {
  give_back();
  (void)std::raise(SIGSTOP);
}

}  // namespace alcove::cli

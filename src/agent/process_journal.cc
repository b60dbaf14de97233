// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_journal.h"

#include <utility>

namespace alcove::agent {
namespace {

// Of all commands together.
constexpr size_t kMaxCommandBytes = 128 * 1024;

// The command line as it is shown, without ever holding more than the part that is kept.
std::string show_command(const ProcessConfig& process) {
  std::string text = process.command.substr(0, kMaxJournalCommand);
  for (const std::string& argument : process.arguments) {
    if (text.size() >= kMaxJournalCommand) break;
    text += ' ';
    text.append(argument, 0, kMaxJournalCommand - text.size());
  }
  text.shrink_to_fit();
  return text;
}

}  // namespace

void ProcessJournal::started(const ProcessConfig& process, uint32_t pid) {
  add({SystemClock().now(), pid, std::nullopt, show_command(process)});
}

void ProcessJournal::ended(uint32_t pid, int wait_status) {
  add({SystemClock().now(), pid, wait_status, {}});
}

void ProcessJournal::add(JournalLine line) {
  command_bytes_ += line.command.size();
  lines_.push_back(std::move(line));
  while (lines_.size() > kMaxJournalLines || command_bytes_ > kMaxCommandBytes) {
    command_bytes_ -= lines_.front().command.size();
    lines_.pop_front();
  }
}

}  // namespace alcove::agent

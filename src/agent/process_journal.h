// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "agent/journal_message.h"
#include "agent/process_messages.h"

namespace alcove::agent {

// The last starts and ends of processes, in memory only: nothing is written or sent before the
// host asks. It takes memory as it fills, up to a limit of lines and one of bytes.
class ProcessJournal {
 public:
  void started(const ProcessConfig& process, uint32_t pid);
  void ended(uint32_t pid, int wait_status);

  const std::deque<JournalLine>& lines() const { return lines_; }

 private:
  void add(JournalLine line);

  std::deque<JournalLine> lines_;
  size_t command_bytes_ = 0;
};

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace alcove::agent {

// A process started or ended: what GET /journal, one of the agent's control paths, tells the host.
struct JournalLine {
  WallTime time;
  uint32_t pid = 0;
  // As waitpid gives it; absent: the line says that the process started.
  std::optional<int32_t> wait_status;
  // Of a start: the command and its arguments, cut to kMaxJournalCommand.
  std::string command;
};

inline constexpr size_t kMaxJournalLines = 1000;
inline constexpr size_t kMaxJournalCommand = 512;
// No journal is larger: every byte of a command may need six in JSON.
inline constexpr uint64_t kMaxJournalBody = kMaxJournalLines * (6 * kMaxJournalCommand + 128);

std::string encode_journal(const std::deque<JournalLine>& lines);
// Whoever answers may be hostile: of what does not fit the limits, the oldest lines and the ends
// of commands are dropped.
Result<std::vector<JournalLine>> decode_journal(std::string_view body);

}  // namespace alcove::agent

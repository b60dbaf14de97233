// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include "agent/journal_message.h"
#include "base/clock.h"
#include "node/log_entry.h"
#include "store/records.h"

namespace alcove::node {

// Why a sandbox ended.
enum class Ending {
  kRequest,
  kTimeout,
  // Its first process died.
  kDied,
  // The operator ended all sandboxes.
  kAdmin,
  // Found gone by a server that had been down.
  kMissed,
};

// The lines that logs consist of.
LogEntry created_line(const store::Sandbox& sandbox);
LogEntry timeout_line(WallTime now, WallTime end_at);
LogEntry taken_over_line(WallTime now);
LogEntry ended_line(WallTime now, Ending ending);
LogEntry process_line(const agent::JournalLine& line);

}  // namespace alcove::node

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "node/log_lines.h"

#include <sys/wait.h>

#include <utility>

#include "base/strings.h"
#include "base/time_format.h"

namespace alcove::node {
namespace {

LogEntry line(WallTime time, std::string logger, std::string event, std::string message) {
  return {.time = time,
          .level = LogLevel::kInfo,
          .message = std::move(message),
          .fields = {{"logger", std::move(logger)}, {"event_type", std::move(event)}}};
}

struct EndingText {
  const char* message;
  // The words of the protocol's lifecycle events (control-plane.md 4.10).
  const char* reason;
};

EndingText describe(Ending ending) {
  switch (ending) {
    case Ending::kRequest:
      return {"sandbox killed by request", "request"};
    case Ending::kTimeout:
      return {"sandbox ended: its timeout was reached", "timeout"};
    case Ending::kDied:
      return {"sandbox ended: its first process died", "unknown"};
    case Ending::kAdmin:
      return {"sandbox ended by the operator", "admin"};
    case Ending::kMissed:
      return {"sandbox ended while the server was down", "orphaned"};
  }
  return {"sandbox ended", "unknown"};
}

}  // namespace

LogEntry created_line(const store::Sandbox& sandbox) {
  const std::string& name =
      sandbox.template_alias.empty() ? sandbox.template_id.str() : sandbox.template_alias;
  LogEntry entry = line(sandbox.started_at, "sandbox", "sandbox_created",
                        cat("sandbox created from template ", name));
  entry.fields["template_id"] = sandbox.template_id.str();
  return entry;
}

LogEntry timeout_line(WallTime now, WallTime end_at) {
  const std::string end = format_rfc3339(end_at);
  LogEntry entry =
      line(now, "sandbox", "sandbox_timeout_set", cat("timeout set: the sandbox ends at ", end));
  entry.fields["end_at"] = end;
  return entry;
}

LogEntry taken_over_line(WallTime now) {
  return line(now, "sandbox", "sandbox_taken_over",
              "sandbox taken over by a restarted server; changes of its timeout before are not "
              "shown");
}

LogEntry ended_line(WallTime now, Ending ending) {
  const EndingText text = describe(ending);
  LogEntry entry = line(now, "sandbox", "sandbox_ended", text.message);
  entry.fields["kill_reason"] = text.reason;
  if (ending == Ending::kDied) entry.level = LogLevel::kError;
  return entry;
}

LogEntry process_line(const agent::JournalLine& from) {
  LogEntry entry;
  if (!from.wait_status) {
    entry = line(from.time, "process", "process_start",
                 cat("process ", from.pid, " started: ", from.command));
    entry.fields["command"] = from.command;
  } else if (WIFSIGNALED(*from.wait_status)) {
    const int signal = WTERMSIG(*from.wait_status);
    entry = line(from.time, "process", "process_end",
                 cat("process ", from.pid, " ended by signal ", signal));
    entry.fields["signal"] = std::to_string(signal);
  } else {
    const int code = WEXITSTATUS(*from.wait_status);
    entry = line(from.time, "process", "process_end",
                 cat("process ", from.pid, " ended with exit code ", code));
    entry.fields["exit_code"] = std::to_string(code);
  }
  entry.fields["pid"] = std::to_string(from.pid);
  return entry;
}

}  // namespace alcove::node

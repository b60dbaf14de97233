// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "net/task.h"

namespace alcove::interpreter {

// What a run tells, in the order in which it happens.

// The kernel has accepted the code; the first event of a run.
struct RunStarted {
  int64_t execution_count = 0;
};

// Something was printed; valid UTF-8, never empty.
struct StreamOutput {
  enum class Name { kStdout, kStderr };
  Name name = Name::kStdout;
  std::string text;
};

// A value as a bundle of MIME types. The server maps the types to the fields of a result.
struct Display {
  enum class Kind { kDisplayed, kValueOfLastExpression };
  boost::json::object data;
  Kind kind = Kind::kDisplayed;
};

// The code failed; at most once a run.
struct RunError {
  std::string name;
  std::string value;
  // Already joined, without a separator.
  std::string traceback;
};

using RunEvent = std::variant<RunStarted, StreamOutput, Display, RunError>;

// Takes a run's events. emit() returns when there is room for the next one, so a kernel that awaits
// it before it reads on passes the client's slowness to the code (back-pressure). Once nobody
// listens any more events are dropped at once; the run goes on until it is over.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual Task<void> emit(RunEvent event) = 0;
};

struct Execution {
  std::string code;
  // For this run only, whatever their values hold; afterwards the old values are back.
  std::map<std::string, std::string> env_vars;
};

enum class RunOutcome {
  // The kernel takes the next execution.
  kDone,
  // The kernel is dead: call end(), and make a new one.
  kDied,
};

// What a kernel is started with.
struct KernelSetup {
  // Its working directory; exists.
  std::string directory;
  // "NAME=value", all of it.
  std::vector<std::string> environment;
};

// One interpreter process of one context. Belongs to one loop; its context owns it and calls
// start() once, execute() one at a time, interrupt() at any moment and end() before it is
// destroyed. A kernel that died idle says so at the next execute().
class Kernel {
 public:
  virtual ~Kernel() = default;

  // Returns when it can execute, or with an error if end() is called before. After a failure only
  // end() may follow.
  virtual Task<Result<void>> start() = 0;

  // Runs the code to its end; all events were emitted when it returns. Not to be canceled: a run
  // ends by interrupt() or by end().
  virtual Task<RunOutcome> execute(Execution execution, EventSink& sink) = 0;

  // Asks the code under way to stop, as soon as it has begun; the run then ends with an error.
  // Nothing happens while the kernel is idle. The context waits, and may end a kernel that does not
  // listen.
  virtual void interrupt() = 0;

  // The last interrupt has reached the code. Asking again would hit what cleans up behind it.
  virtual bool interrupt_arrived() const = 0;

  // It started so many processes that only its end helps.
  virtual bool runs_away() const = 0;

  // Kills the process with all that it started in its session, and waits until it is gone. An
  // execute() under way returns kDied; its sink must have room by then. Idempotent.
  virtual Task<void> end() = 0;
};

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "interpreter/kernel.h"

namespace alcove::interpreter {

// What the interpreter and a language runner say to each other on the runner's fd 3: a length of
// four bytes, big-endian, and that many bytes of one JSON object.

inline constexpr uint32_t kMaxFrame = 256u << 20;

// Cuts received bytes into frames.
class FrameParser {
 public:
  void append(std::string_view bytes) { buffer_.append(bytes); }
  // The next whole frame's JSON, or nothing yet; an error for one that is too long.
  Result<std::optional<std::string>> next();

 private:
  std::string buffer_;
  size_t start_ = 0;
};

// Whether a SIGINT was sent since the last execution began. It may still be on its way: a runner
// that hears of signals on another thread waits for it before it begins, so that it hits nothing
// else.
enum class Before { kNothing, kInterrupt };
std::string execute_frame(int64_t id, const Execution& execution, Before before = Before::kNothing);

struct RunnerReady {};
struct RunnerDone {
  int64_t id = 0;
};
struct RunnerEvent {
  int64_t id = 0;
  RunEvent event;
};
// Of a kind that is not known here, or not of the right shape.
struct RunnerUnknown {};
using RunnerMessage = std::variant<RunnerReady, RunnerDone, RunnerEvent, RunnerUnknown>;

// The runner shares its process with the user's code: anything may come.
RunnerMessage parse_runner_message(std::string_view json);

}  // namespace alcove::interpreter

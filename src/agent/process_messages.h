// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "agent/spawn.h"
#include "base/result.h"
#include "connect/connect.h"

namespace alcove::agent {

// The messages of process.Process (protocol/envd.md 2A.1) and how they are read and written in a
// codec (process_json.h, process_proto.h).

// A command with its environment, or a piece of input; clients send input in 64 KiB pieces.
inline constexpr uint64_t kMaxProcessMessage = 64ull << 20;
// Of the calls that carry neither: they name a process and say little about it.
inline constexpr uint64_t kMaxSmallMessage = 64ull << 10;

struct ProcessConfig {
  std::string command;
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;
  std::optional<std::string> directory;
};

struct StartRequest {
  ProcessConfig process;
  // Present: the process gets a terminal.
  std::optional<TerminalSize> terminal;
  std::optional<std::string> tag;
  SpawnSpec::Input input = SpawnSpec::Input::kPipe;
};

struct ByPid {
  uint32_t pid = 0;
};
struct ByTag {
  std::string tag;
};
// monostate: the request names neither.
using ProcessSelector = std::variant<std::monostate, ByPid, ByTag>;

enum class InputKind { kStdin, kTerminal };
struct ProcessInput {
  InputKind kind = InputKind::kStdin;
  std::string data;
};

struct SendInputRequest {
  ProcessSelector process;
  std::optional<ProcessInput> input;
};

// One message of StreamInput: the selector comes first, then input; a keepalive has neither.
struct StreamInputRequest {
  std::optional<ProcessSelector> start;
  std::optional<ProcessInput> input;
  // A `data` event, be it without any input.
  bool has_data = false;
};

enum class Signal { kUnspecified = 0, kKill = 9, kTerminate = 15 };
struct SendSignalRequest {
  ProcessSelector process;
  // A number that is none of the enum's stays what it is.
  int signal = 0;
};

struct UpdateRequest {
  ProcessSelector process;
  std::optional<TerminalSize> terminal;
};

struct ProcessInfo {
  ProcessConfig config;
  uint32_t pid = 0;
  std::optional<std::string> tag;
};

enum class OutputKind { kStdout, kStderr, kTerminal };

struct EndEvent {
  int32_t exit_code = 0;
  bool exited = false;
  std::string status;
  std::optional<std::string> error;
};

Result<StartRequest> decode_start(connect::Codec codec, std::string_view message);
// ConnectRequest and CloseStdinRequest are nothing but a selector.
Result<ProcessSelector> decode_selector(connect::Codec codec, std::string_view message);
Result<SendInputRequest> decode_send_input(connect::Codec codec, std::string_view message);
Result<StreamInputRequest> decode_stream_input(connect::Codec codec, std::string_view message);
Result<SendSignalRequest> decode_send_signal(connect::Codec codec, std::string_view message);
Result<UpdateRequest> decode_update(connect::Codec codec, std::string_view message);

std::string encode_process_list(connect::Codec codec, const std::vector<ProcessInfo>& processes);
// Events of Start and Connect, appended with their envelope. Output is the hot path: it is written
// straight into `out`.
void append_start_event(connect::Codec codec, uint32_t pid, std::string& out);
void append_output_event(connect::Codec codec, OutputKind kind, std::string_view data,
                         std::string& out);
void append_end_event(connect::Codec codec, const EndEvent& end, std::string& out);
void append_keepalive_event(connect::Codec codec, std::string& out);
// A message without fields.
std::string encode_empty(connect::Codec codec);

// How a process ended, from its wait status: "exit status 1", "signal: killed (core dumped)".
EndEvent describe_exit(int wait_status);

}  // namespace alcove::agent

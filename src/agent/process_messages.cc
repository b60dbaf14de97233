// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/process_messages.h"

#include <sys/wait.h>

#include <array>

#include "agent/process_json.h"
#include "agent/process_proto.h"
#include "base/strings.h"

namespace alcove::agent {

using connect::Codec;

namespace {

// The text of signals as clients know it; others are "signal N".
constexpr std::array<std::string_view, 16> kSignalNames = {"",
                                                           "hangup",
                                                           "interrupt",
                                                           "quit",
                                                           "illegal instruction",
                                                           "trace/breakpoint trap",
                                                           "aborted",
                                                           "bus error",
                                                           "floating point exception",
                                                           "killed",
                                                           "user defined signal 1",
                                                           "segmentation fault",
                                                           "user defined signal 2",
                                                           "broken pipe",
                                                           "alarm clock",
                                                           "terminated"};

}  // namespace

Result<StartRequest> decode_start(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_start(message)
                               : proto_codec::decode_start(message);
}

Result<ProcessSelector> decode_selector(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_selector(message)
                               : proto_codec::decode_selector(message);
}

Result<SendInputRequest> decode_send_input(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_send_input(message)
                               : proto_codec::decode_send_input(message);
}

Result<StreamInputRequest> decode_stream_input(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_stream_input(message)
                               : proto_codec::decode_stream_input(message);
}

Result<SendSignalRequest> decode_send_signal(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_send_signal(message)
                               : proto_codec::decode_send_signal(message);
}

Result<UpdateRequest> decode_update(Codec codec, std::string_view message) {
  return codec == Codec::kJson ? json_codec::decode_update(message)
                               : proto_codec::decode_update(message);
}

std::string encode_process_list(Codec codec, const std::vector<ProcessInfo>& processes) {
  return codec == Codec::kJson ? json_codec::encode_process_list(processes)
                               : proto_codec::encode_process_list(processes);
}

void append_start_event(Codec codec, uint32_t pid, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_start_event(pid, out)
                               : proto_codec::append_start_event(pid, out);
}

void append_output_event(Codec codec, OutputKind kind, std::string_view data, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_output_event(kind, data, out)
                               : proto_codec::append_output_event(kind, data, out);
}

void append_end_event(Codec codec, const EndEvent& end, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_end_event(end, out)
                               : proto_codec::append_end_event(end, out);
}

void append_keepalive_event(Codec codec, std::string& out) {
  return codec == Codec::kJson ? json_codec::append_keepalive_event(out)
                               : proto_codec::append_keepalive_event(out);
}

std::string encode_empty(Codec codec) { return codec == Codec::kJson ? "{}" : ""; }

EndEvent describe_exit(int wait_status) {
  EndEvent end;
  if (WIFSIGNALED(wait_status)) {
    const int number = WTERMSIG(wait_status);
    const auto index = static_cast<size_t>(number);
    end.exit_code = -1;
    end.status = index < kSignalNames.size() ? cat("signal: ", kSignalNames[index])
                                             : cat("signal: signal ", number);
    if (WCOREDUMP(wait_status)) end.status += " (core dumped)";
  } else {
    end.exit_code = WEXITSTATUS(wait_status);
    end.exited = true;
    end.status = cat("exit status ", end.exit_code);
  }
  if (end.exit_code != 0) end.error = end.status;
  return end;
}

}  // namespace alcove::agent

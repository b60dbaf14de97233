// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/process_messages.h"
#include "base/result.h"

// The messages of process.Process as JSON; process_messages.h says what they are.
namespace alcove::agent::json_codec {

Result<StartRequest> decode_start(std::string_view message);
Result<ProcessSelector> decode_selector(std::string_view message);
Result<SendInputRequest> decode_send_input(std::string_view message);
Result<StreamInputRequest> decode_stream_input(std::string_view message);
Result<SendSignalRequest> decode_send_signal(std::string_view message);
Result<UpdateRequest> decode_update(std::string_view message);

std::string encode_process_list(const std::vector<ProcessInfo>& processes);
void append_start_event(uint32_t pid, std::string& out);
void append_output_event(OutputKind kind, std::string_view data, std::string& out);
void append_end_event(const EndEvent& end, std::string& out);
void append_keepalive_event(std::string& out);

}  // namespace alcove::agent::json_codec

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
// What a ZeroMQ peer sends: frames are the same however the bytes are cut, and commands and
// Jupyter messages in them are refused or read, never trusted.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "interpreter/jupyter_message.h"
#include "interpreter/zmtp_command.h"
#include "interpreter/zmtp_frame.h"

namespace {

using namespace alcove::interpreter;

std::vector<ZmtpFrame> decode(std::string_view bytes, size_t piece) {
  std::vector<ZmtpFrame> frames;
  ZmtpFrameDecoder decoder;
  while (!bytes.empty()) {
    std::string_view rest = bytes.substr(0, piece);
    bytes.remove_prefix(rest.size());
    while (!rest.empty()) {
      auto frame = decoder.take(rest);
      if (!frame) return frames;
      if (*frame) frames.push_back(std::move(**frame));
    }
  }
  return frames;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)check_zmtp_greeting(bytes.substr(0, kZmtpGreetingBytes));
  auto frames = decode(bytes, size);
  ALCOVE_ASSERT(decode(bytes, 1).size() == frames.size());
  ZmtpMessageAssembler assembler;
  for (ZmtpFrame& frame : frames) {
    if (frame.kind == ZmtpFrame::Kind::kCommand) {
      const auto command = parse_zmtp_command(frame.body);
      if (!command) continue;
      (void)parse_zmtp_ready(command->data);
      (void)make_zmtp_pong(command->data);
      continue;
    }
    const auto message = assembler.add(std::move(frame));
    if (!message) break;
    if (!*message) continue;
    const auto read = decode_jupyter_message(**message, /*key=*/"");
    if (read) ALCOVE_ASSERT(decode_jupyter_message(encode_jupyter_message(*read, "k"), "k"));
  }
  return 0;
}

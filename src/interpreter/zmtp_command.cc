// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "interpreter/zmtp_command.h"

#include <cstdint>
#include <optional>

#include "base/strings.h"

namespace alcove::interpreter {
namespace {

constexpr size_t kPingLifeTimeBytes = 2;
constexpr size_t kMostPingContext = 16;

// A text with its length before it in `length_bytes` bytes; nothing if it is cut off.
std::optional<std::string_view> take_text(std::string_view& bytes, size_t length_bytes) {
  if (bytes.size() < length_bytes) return {};
  uint64_t length = 0;
  for (const char byte : bytes.substr(0, length_bytes)) {
    length = length << 8 | static_cast<unsigned char>(byte);
  }
  bytes.remove_prefix(length_bytes);
  if (bytes.size() < length) return {};
  const std::string_view text = bytes.substr(0, length);
  bytes.remove_prefix(length);
  return text;
}

void append_property(std::string& out, std::string_view name, std::string_view value) {
  out += static_cast<char>(name.size());
  out += name;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>((value.size() >> shift) & 0xFF);
  }
  out += value;
}

std::string begin_command(std::string_view name) {
  return cat(static_cast<char>(name.size()), name);
}

}  // namespace

Result<ZmtpCommand> parse_zmtp_command(std::string_view body) {
  const auto name = take_text(body, 1);
  if (!name || name->empty()) return fail(Code::kInvalidArgument, "a ZMTP command without a name");
  return ZmtpCommand{.name = *name, .data = body};
}

std::string make_zmtp_ready(const ZmtpReady& ready) {
  std::string out = begin_command("READY");
  append_property(out, "Socket-Type", ready.socket_type);
  append_property(out, "Identity", ready.identity);
  return out;
}

Result<ZmtpReady> parse_zmtp_ready(std::string_view data) {
  ZmtpReady ready;
  while (!data.empty()) {
    const auto name = take_text(data, 1);
    const auto value = name ? take_text(data, 4) : std::nullopt;
    if (!value || name->empty()) {
      return fail(Code::kInvalidArgument, "a ZMTP property that is cut off");
    }
    if (equal_ignoring_case(*name, "Socket-Type")) ready.socket_type = *value;
    if (equal_ignoring_case(*name, "Identity")) ready.identity = *value;
  }
  return ready;
}

Result<std::string> make_zmtp_pong(std::string_view ping_data) {
  if (ping_data.size() < kPingLifeTimeBytes ||
      ping_data.size() > kPingLifeTimeBytes + kMostPingContext) {
    return fail(Code::kInvalidArgument, "a malformed ZMTP PING");
  }
  return begin_command("PONG").append(ping_data.substr(kPingLifeTimeBytes));
}

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace alcove::interpreter {

// The body of a ZMTP command: a name and data that depend on it.
struct ZmtpCommand {
  std::string_view name;
  std::string_view data;
};
// Refers to `body`.
Result<ZmtpCommand> parse_zmtp_command(std::string_view body);

// What a socket says of itself when a connection begins.
struct ZmtpReady {
  std::string socket_type;
  std::string identity;
};
std::string make_zmtp_ready(const ZmtpReady& ready);
// `data` of a READY command.
Result<ZmtpReady> parse_zmtp_ready(std::string_view data);

// The answer to a PING with this data; nothing if the PING is malformed.
Result<std::string> make_zmtp_pong(std::string_view ping_data);

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include <boost/json/object.hpp>

#include "base/result.h"
#include "interpreter/zmtp_frame.h"

namespace alcove::interpreter {

// A message of Jupyter's protocol, version 5.3: what its four JSON frames say, as far as we need
// it. Binary buffers behind them are left out.
struct JupyterMessage {
  std::string type;       // "execute_request"
  std::string id;         // unique; answers carry it as their parent
  std::string session;    // of the sender
  std::string parent_id;  // empty if it answers nothing
  std::string date;       // ISO 8601, as the kernel wrote it; may be empty
  boost::json::object content;
};

// The frames of a message without routing prefix, signed with `key`.
ZmtpMessage encode_jupyter_message(const JupyterMessage& message, std::string_view key);

// Finds the delimiter, checks the signature and reads the JSON; what stands before the delimiter
// (identities, a topic) is ignored.
Result<JupyterMessage> decode_jupyter_message(const ZmtpMessage& frames, std::string_view key);

}  // namespace alcove::interpreter

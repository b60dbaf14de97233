// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "http/message.h"

namespace alcove::gateway {

// What the gateway answers itself. Clients choose their exception by status and by parts of the
// texts ("was not found", "port is not open"), so these are part of the protocol.
enum class Trouble {
  kSandboxNotFound,  // unknown, killed or not running
  kSandboxUnclear,   // of an earlier server, and not taken over yet
  kPortClosed,       // running, but nothing listens there
  kTrafficTokenMissing,
  kTrafficTokenWrong,
  kNoAnswer,             // the service closed the connection before it answered
  kBadAnswer,            // the service's answer is not valid HTTP
  kTooSlow,              // the service does not take the connection, or does not shake hands
  kNoConnection,         // the server lacks what it takes to connect: its fault, not the sandbox's
  kNoTls,                // the port is one of httpsPorts, and the service does not speak TLS
  kTooManyWaiting,       // of one sandbox: for services that are just starting
  kTooManyWaitingInAll,  // the same of the server
};

// JSON, or HTML for a person who looks at the page in a browser. Pages of any origin may read it.
// What may go better in a moment has a Retry-After. `limit` is shown with kTooManyWaiting.
http::Response make_error_page(Trouble trouble, const http::RequestHead& request,
                               const SandboxId& id, uint16_t port, size_t limit = 0);

// For a control call of the agent: looks like a path that does not exist.
http::Response make_control_path_refusal(std::string_view path);

// {"code": ..., "message": ...}; `message` is ours and needs no escapes. With a Retry-After if the
// status asks for one.
http::Response make_error(int status, std::string_view message);
http::Response make_plain_text(int status, std::string_view text);

// True if the answer is for a browser's window rather than for a program or a script in a page.
bool wants_html(const http::RequestHead& request);

}  // namespace alcove::gateway

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "connect/connect.h"
#include "http/body.h"
#include "net/task.h"

namespace alcove::connect {

// The caller's side. Answers may come from a program inside a sandbox: they are not trusted.

// What an error object stands for: {"code":"not_found","message":"..."}. A text that is none, or
// has a code nobody knows, is kUnknown.
Error parse_error(std::string_view json);

// The messages of a streaming call's answer.
class StreamReader {
 public:
  StreamReader(http::BodyReader& body, uint64_t message_limit) : envelopes_(body, message_limit) {}

  // The next message; nullopt at the call's orderly end. An error if the call ended with one, and
  // kDataLoss if the body ended before the call did.
  Task<Result<std::optional<std::string>>> next();

 private:
  EnvelopeReader envelopes_;
};

}  // namespace alcove::connect

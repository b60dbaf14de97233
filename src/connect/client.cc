// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/client.h"

#include "connect/json_codec.h"

namespace alcove::connect {
namespace {

namespace json = boost::json;

Code code_of(std::string_view name) {
  for (int i = 0; i <= static_cast<int>(Code::kUnauthenticated); ++i) {
    const auto code = static_cast<Code>(i);
    if (code_name(code) == name) return code;
  }
  return Code::kUnknown;
}

Error error_of(const json::object& object) {
  const auto code = read_string(object, "code");
  const auto message = read_string(object, "message");
  return Error(code ? code_of(*code) : Code::kUnknown,
               message && !message->empty() ? *message : "an error without a text");
}

}  // namespace

Error parse_error(std::string_view text) {
  const auto object = parse_message(text);
  return object ? error_of(*object) : Error(Code::kUnknown, "an answer that is no error object");
}

Task<Result<std::optional<std::string>>> StreamReader::next() {
  ALCOVE_CO_TRY_ASSIGN(auto envelope, co_await envelopes_.next_of_answer());
  if (!envelope) co_return fail(Code::kDataLoss, "the answer was cut before its end");
  if (!envelope->end_of_stream) co_return std::move(envelope->message);
  ALCOVE_CO_TRY_ASSIGN(const json::object end, parse_message(envelope->message));
  ALCOVE_CO_TRY_ASSIGN(const json::object* error, read_object(end, "error"));
  if (error != nullptr) co_return fail(error_of(*error));
  co_return std::nullopt;
}

}  // namespace alcove::connect

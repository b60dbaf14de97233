// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/exchange.h"
#include "net/task.h"

namespace alcove::connect {

// How messages are written: protocol/envd.md section 1. The official SDKs use JSON only.
enum class Codec { kJson, kProto };

// HTTP status of a unary error.
int http_status(Code code);

// {"code":"not_found","message":"..."}
std::string error_json(const Error& error);

// What the headers of a request say about the call.
struct CallInfo {
  Codec codec = Codec::kJson;
  bool streaming = false;
  // From Connect-Timeout-Ms, counted from the arrival of the head.
  std::optional<std::chrono::steady_clock::time_point> deadline;
  std::optional<std::chrono::milliseconds> timeout;
  // From Keepalive-Ping-Interval (seconds; 90 if absent or broken, at least 1).
  std::chrono::seconds keepalive{90};
};

// Checks method, content type, protocol version, encodings and timeout. On refusal it has already
// answered (405, 415, a Connect error in the right shape) and returns nothing.
enum class CallKind { kUnary, kStream };
Task<std::optional<CallInfo>> accept_call(http::Exchange& exchange, CallKind kind);

// The codec and kind that the content type names, for answers to what was not accepted; an unknown
// one is a unary JSON call.
CallInfo call_shape(const http::RequestHead& request);

// Answers a call of a method that does not exist: kUnimplemented in the shape of the call. (Plain
// 404s mean something else to clients.)
Task<void> refuse_unknown_method(http::Exchange& exchange, std::string_view service,
                                 std::string_view method);

// Reads the single message of a unary call (with gzip if so encoded; the limit is ours).
Task<Result<std::string>> read_unary(http::Exchange& exchange, uint64_t limit);
// The same from `body`, which is the exchange's behind something that watches it.
Task<Result<std::string>> read_unary(const http::RequestHead& request, http::BodyReader& body,
                                     uint64_t limit);
Task<void> respond_unary(http::Exchange& exchange, const CallInfo& call, std::string message);
Task<void> respond_error(http::Exchange& exchange, const CallInfo& call, const Error& error);

// Takes envelopes off a request body.
class EnvelopeReader {
 public:
  EnvelopeReader(http::BodyReader& body, uint64_t message_limit);
  // The next message; nullopt at the end of the body; errors for compressed or oversized ones and
  // for a body that ends inside an envelope.
  Task<Result<std::optional<std::string>>> next();

  struct Envelope {
    // True for the last envelope of an answer, which tells how the call ended.
    bool end_of_stream = false;
    std::string message;
  };
  // The same for the body of an answer.
  Task<Result<std::optional<Envelope>>> next_of_answer();

 private:
  Task<Result<std::optional<Envelope>>> take(char accepted_flags);
  // The message of `size` bytes that was received; the envelope is used then.
  std::string hand_out(size_t size);

  http::BodyReader& body_;
  uint64_t limit_;
  std::string buffer_;
  // What was handed out from the front of buffer_.
  size_t used_ = 0;
};

// The one message of a server-streaming call, body read to its end; zero or several messages are
// kUnimplemented.
Task<Result<std::string>> read_single(http::Exchange& exchange, uint64_t limit);
Task<Result<std::string>> read_single(http::BodyReader& body, uint64_t limit);

// The answer of a streaming call: HTTP 200, envelopes, one end-of-stream envelope. The head goes
// out with the first envelope.
class StreamWriter {
 public:
  StreamWriter(http::Exchange& exchange, const CallInfo& call);

  // Sends one message at once.
  Task<Result<void>> send(std::string_view message);
  // Sends several envelopes that are already framed by append_envelope(), in one packet.
  Task<Result<void>> send_framed(std::string_view envelopes);
  // The end, with an error or without; `framed` envelopes go out in the same packet before it.
  // Nothing may be sent afterwards.
  Task<Result<void>> finish(const std::optional<Error>& error, std::string_view framed = {});

 private:
  http::Headers headers() const;

  http::Exchange& exchange_;
  Codec codec_;
  bool started_ = false;
};

// Appends flag byte, length and payload.
void append_envelope(std::string& out, std::string_view message);
// The same for a payload of `size` bytes that the caller appends itself.
void append_envelope_head(std::string& out, size_t size);

}  // namespace alcove::connect

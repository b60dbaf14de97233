// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include <algorithm>
#include <array>
#include <utility>

#include "base/strings.h"
#include "connect/connect.h"

namespace alcove::connect {
namespace {

constexpr char kEndOfStream = 0x02;
constexpr size_t kHeaderSize = 5;
constexpr size_t kReadSize = 16 * 1024;
// Longer ones are handed out with the memory they were received into.
constexpr size_t kLongMessage = 64 * 1024;

void append_header(std::string& out, char flags, size_t size) {
  const char header[kHeaderSize] = {flags, static_cast<char>(size >> 24),
                                    static_cast<char>(size >> 16), static_cast<char>(size >> 8),
                                    static_cast<char>(size)};
  out.append(header, kHeaderSize);
}

std::string end_of_stream(const std::optional<Error>& error) {
  if (!error) return "{}";
  return cat("{\"error\":", error_json(*error), '}');
}

}  // namespace

void append_envelope_head(std::string& out, size_t size) { append_header(out, /*flags=*/0, size); }

void append_envelope(std::string& out, std::string_view message) {
  append_envelope_head(out, message.size());
  out += message;
}

EnvelopeReader::EnvelopeReader(http::BodyReader& body, uint64_t message_limit)
    : body_(body), limit_(message_limit) {}

Task<Result<std::optional<std::string>>> EnvelopeReader::next() {
  ALCOVE_CO_TRY_ASSIGN(auto envelope, co_await take(/*accepted_flags=*/0));
  if (!envelope) co_return std::nullopt;
  co_return std::move(envelope->message);
}

Task<Result<std::optional<EnvelopeReader::Envelope>>> EnvelopeReader::next_of_answer() {
  return take(kEndOfStream);
}

Task<Result<std::optional<EnvelopeReader::Envelope>>> EnvelopeReader::take(char accepted_flags) {
  for (;;) {
    const std::string_view received = std::string_view(buffer_).substr(used_);
    size_t wanted = kHeaderSize;
    if (received.size() >= kHeaderSize) {
      if ((received[0] & ~accepted_flags) != 0) {
        co_return fail(Code::kInvalidArgument, "compressed or unknown kind of envelope");
      }
      uint64_t size = 0;
      for (size_t i = 1; i < kHeaderSize; ++i) size = size << 8 | static_cast<uint8_t>(received[i]);
      if (size > limit_) {
        co_return fail(Code::kResourceExhausted,
                       cat("a message of ", size, " bytes is over the limit of ", limit_));
      }
      wanted += static_cast<size_t>(size);
      if (received.size() >= wanted) {
        co_return Envelope{.end_of_stream = received[0] == kEndOfStream,
                           .message = hand_out(static_cast<size_t>(size))};
      }
    }
    // Moves the rest to the front once per read, not once per message.
    buffer_.erase(0, used_);
    used_ = 0;
    const size_t have = buffer_.size();
    // No more than is missing of a long message, so that it is not copied again.
    buffer_.resize(have + std::clamp(wanted - have, size_t{512}, kReadSize));
    const auto count = co_await body_.read(std::span(buffer_).subspan(have));
    buffer_.resize(have + count.value_or(0));
    if (!count) co_return fail(count.error());
    if (*count == 0 && have == 0) co_return std::nullopt;
    if (*count == 0) co_return fail(Code::kInvalidArgument, "the body ends inside an envelope");
  }
}

std::string EnvelopeReader::hand_out(size_t size) {
  const size_t begin = used_ + kHeaderSize;
  if (size <= kLongMessage) {
    used_ = begin + size;
    return buffer_.substr(begin, size);
  }
  std::string rest = buffer_.substr(begin + size);
  buffer_.resize(begin + size);
  buffer_.erase(0, begin);
  used_ = 0;
  return std::exchange(buffer_, std::move(rest));
}

Task<Result<std::string>> read_single(http::Exchange& exchange, uint64_t limit) {
  return read_single(exchange.body(), limit);
}

Task<Result<std::string>> read_single(http::BodyReader& body, uint64_t limit) {
  EnvelopeReader reader(body, limit);
  ALCOVE_CO_TRY_ASSIGN(auto message, co_await reader.next());
  if (!message) co_return fail(Code::kUnimplemented, "the call needs one message, got none");
  ALCOVE_CO_TRY_ASSIGN(const auto second, co_await reader.next());
  if (second) co_return fail(Code::kUnimplemented, "the call needs one message, got several");
  co_return std::move(*message);
}

StreamWriter::StreamWriter(http::Exchange& exchange, const CallInfo& call)
    : exchange_(exchange), codec_(call.codec) {}

http::Headers StreamWriter::headers() const {
  // No parameters: a client compares the type byte by byte.
  return {{"Content-Type",
           codec_ == Codec::kJson ? "application/connect+json" : "application/connect+proto"}};
}

Task<Result<void>> StreamWriter::send(std::string_view message) {
  std::string framed;
  framed.reserve(kHeaderSize + message.size());
  append_envelope(framed, message);
  co_return co_await send_framed(framed);
}

Task<Result<void>> StreamWriter::send_framed(std::string_view envelopes) {
  if (started_) co_return co_await exchange_.write(envelopes);
  started_ = true;
  http::ResponseHead head{.status = 200, .headers = headers()};
  co_return co_await exchange_.start_with(std::move(head), std::nullopt, envelopes);
}

Task<Result<void>> StreamWriter::finish(const std::optional<Error>& error,
                                        std::string_view framed) {
  const std::string end = end_of_stream(error);
  std::string last(framed);
  append_header(last, kEndOfStream, end.size());
  last += end;
  if (started_) co_return co_await exchange_.finish(last);
  started_ = true;
  // Nothing was sent yet, so that the length of everything is known.
  http::Response response{.status = 200, .headers = headers(), .body = std::move(last)};
  co_return co_await exchange_.respond(std::move(response));
}

}  // namespace alcove::connect

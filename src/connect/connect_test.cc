// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/connect.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <zlib.h>

#include <optional>
#include <span>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>

#include "base/strings.h"
#include "connect/gzip.h"
#include "http/testing/raw_client.h"
#include "net/testing/loop_runner.h"

namespace alcove::connect {
namespace {

using http::testing::RawClient;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kLimit = 1000;

// Answers a unary call with its message in brackets.
Task<void> unary(http::Exchange& exchange) {
  const auto call = co_await accept_call(exchange, CallKind::kUnary);
  if (!call) co_return;
  const auto message = co_await read_unary(exchange, kLimit);
  if (!message) {
    co_await respond_error(exchange, *call, message.error());
    co_return;
  }
  co_await respond_unary(exchange, *call, cat('[', *message, ']'));
}

// Answers a server-streaming call with its message twice.
Task<void> stream(http::Exchange& exchange) {
  const auto call = co_await accept_call(exchange, CallKind::kStream);
  if (!call) co_return;
  const auto message = co_await read_single(exchange, kLimit);
  StreamWriter writer(exchange, *call);
  if (!message) {
    (void)co_await writer.finish(message.error());
    co_return;
  }
  EXPECT_TRUE(co_await writer.send(*message));
  std::string framed;
  append_envelope(framed, *message);
  EXPECT_TRUE(co_await writer.finish(std::nullopt, framed));
}

std::string request(std::string_view content_type, std::string_view headers,
                    std::string_view body) {
  return cat("POST /s/M HTTP/1.1\r\nHost: x\r\nContent-Type: ", content_type, "\r\n", headers,
             "Content-Length: ", body.size(), "\r\n\r\n", body);
}

std::string ask_unary(std::string_view headers, std::string_view body,
                      std::string_view content_type = "application/json") {
  RawClient client(unary);
  return client.talk(request(content_type, headers, body));
}

std::string ask_stream(std::string_view headers, std::string_view body,
                       std::string_view content_type = "application/connect+json") {
  RawClient client(stream);
  return client.talk(request(content_type, headers, body));
}

std::string envelope(std::string_view message, char flags = 0) {
  std::string out;
  append_envelope(out, message);
  out[0] = flags;
  return out;
}

std::string gzip(std::string_view text) {
  z_stream packer{};
  EXPECT_EQ(deflateInit2(&packer, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(text.size() + 100, '\0');
  packer.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  packer.avail_in = static_cast<uInt>(text.size());
  packer.next_out = reinterpret_cast<Bytef*>(out.data());
  packer.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&packer, Z_FINISH), Z_STREAM_END);
  out.resize(packer.total_out);
  deflateEnd(&packer);
  return out;
}

TEST(Unary, AnswersInTheCodecOfTheRequest) {
  EXPECT_EQ(ask_unary("", "{}"),
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4\r\n\r\n[{}]");
  EXPECT_THAT(ask_unary("", "ab", "application/proto"),
              HasSubstr("Content-Type: application/proto\r\n"));
  EXPECT_THAT(ask_unary("", "", "application/proto"), EndsWith("[]"));
  EXPECT_THAT(ask_unary("", "{}", "Application/JSON; charset=UTF-8"), EndsWith("[{}]"));
}

TEST(Unary, AcceptsTheHeadersOfTheClients) {
  EXPECT_THAT(ask_unary("Connect-Protocol-Version: 1\r\nConnect-Timeout-Ms: 60000\r\n"
                        "Content-Encoding: identity\r\nAccept-Encoding: identity\r\n",
                        "{}"),
              StartsWith("HTTP/1.1 200 OK"));
}

TEST(Unary, UnpacksGzip) {
  EXPECT_THAT(ask_unary("Content-Encoding: gzip\r\n", gzip("{\"a\":1}")), EndsWith("[{\"a\":1}]"));
  EXPECT_THAT(ask_unary("Content-Encoding: gzip\r\n", "{}"),
              HasSubstr("{\"code\":\"invalid_argument\""));
  EXPECT_THAT(ask_unary("Content-Encoding: gzip\r\n", gzip(std::string(kLimit + 1, 'x'))),
              HasSubstr("{\"code\":\"resource_exhausted\""));
}

TEST(Unary, RefusesWithTheRightStatusAndCode) {
  EXPECT_THAT(ask_unary("", ""), AllOf(StartsWith("HTTP/1.1 400 "),
                                       HasSubstr("\r\nContent-Type: application/json\r\n"),
                                       HasSubstr("{\"code\":\"invalid_argument\",\"message\":\"")));
  EXPECT_THAT(ask_unary("Content-Encoding: br\r\n", "{}"),
              AllOf(StartsWith("HTTP/1.1 501 "), HasSubstr("\"unimplemented\"")));
  EXPECT_THAT(ask_unary("Connect-Protocol-Version: 2\r\n", "{}"),
              AllOf(StartsWith("HTTP/1.1 400 "), HasSubstr("\"invalid_argument\"")));
  EXPECT_THAT(ask_unary("", std::string(kLimit + 1, 'x')),
              AllOf(StartsWith("HTTP/1.1 429 "), HasSubstr("\"resource_exhausted\"")));
  for (const std::string_view timeout : {"12345678901", "1.5", "-1", "+1", "abc", "1 2"}) {
    const std::string header = cat("Connect-Timeout-Ms: ", timeout, "\r\n");
    EXPECT_THAT(ask_unary(header, "{}"), HasSubstr("\"invalid_argument\"")) << timeout;
  }
}

TEST(Unary, RefusesOtherMethodsAndTypesWithoutABody) {
  RawClient client(unary);
  EXPECT_EQ(client.talk("GET /s/M HTTP/1.1\r\nHost: x\r\n\r\n"),
            "HTTP/1.1 405 Method Not Allowed\r\nAllow: POST\r\nContent-Length: 0\r\n\r\n");
  for (const std::string_view type : {"text/plain", "application/connect+json", "",
                                      "application/json; charset=latin1", "application/jsonx"}) {
    EXPECT_EQ(ask_unary("", "{}", type),
              "HTTP/1.1 415 Unsupported Media Type\r\n"
              "Accept-Post: application/json, application/proto\r\nContent-Length: 0\r\n\r\n")
        << type;
  }
  EXPECT_THAT(ask_stream("", "", "application/json"),
              HasSubstr("Accept-Post: application/connect+json, application/connect+proto\r\n"));
  EXPECT_THAT(ask_stream("", "", "application/connect+json; charset=utf-8"),
              StartsWith("HTTP/1.1 415 "));
}

TEST(Stream, FramesMessagesAndEnds) {
  const std::string answer =
      ask_stream("Connect-Content-Encoding: identity\r\nConnect-Accept-Encoding: identity\r\n",
                 envelope("{}"));
  const std::string message = envelope("{}");
  EXPECT_EQ(answer, cat("HTTP/1.1 200 OK\r\nContent-Type: application/connect+json\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n7\r\n",
                        message, "\r\ne\r\n", message, envelope("{}", 2), "\r\n0\r\n\r\n"));
}

std::string end_with(std::string_view code) {
  return cat("{\"error\":{\"code\":\"", code, "\",\"message\":\"");
}

TEST(Stream, ErrorsRideTheEndOfAStreamWithStatus200) {
  const auto refused = [](std::string_view code) {
    return AllOf(StartsWith("HTTP/1.1 200 OK\r\n"),
                 HasSubstr("Content-Type: application/connect+json\r\n"), HasSubstr(end_with(code)),
                 EndsWith("\"}}"));
  };
  EXPECT_THAT(ask_stream("", ""), refused("unimplemented"));
  EXPECT_THAT(ask_stream("", envelope("{}") + envelope("{}")), refused("unimplemented"));
  EXPECT_THAT(ask_stream("", envelope("{}", 1)), refused("invalid_argument"));
  EXPECT_THAT(ask_stream("", envelope("{}", 2)), refused("invalid_argument"));
  EXPECT_THAT(ask_stream("", envelope("{}").substr(0, 3)), refused("invalid_argument"));
  EXPECT_THAT(ask_stream("", envelope("{}").substr(0, 6)), refused("invalid_argument"));
  EXPECT_THAT(ask_stream("", envelope(std::string(kLimit + 1, 'x'))),
              refused("resource_exhausted"));
  EXPECT_THAT(ask_stream("Connect-Content-Encoding: gzip\r\n", envelope("{}")),
              refused("unimplemented"));
  EXPECT_THAT(ask_stream("Connect-Protocol-Version: 0\r\n", envelope("{}")),
              refused("invalid_argument"));
  EXPECT_THAT(ask_stream("Connect-Timeout-Ms: x\r\n", envelope("{}")), refused("invalid_argument"));
}

TEST(Stream, TheEndEnvelopeSaysItsLength) {
  const std::string answer = ask_stream("", "");
  const std::string body = answer.substr(answer.find("\r\n\r\n") + 4);
  ASSERT_GT(body.size(), 5u);
  EXPECT_EQ(body[0], 2);
  EXPECT_EQ(static_cast<size_t>(static_cast<unsigned char>(body[4])), body.size() - 5);
}

// What accept_call() makes of headers.
struct InfoHandler {
  std::optional<CallInfo>* seen;
  static Task<void> serve(std::optional<CallInfo>* seen, http::Exchange& exchange) {
    *seen = co_await accept_call(exchange, CallKind::kUnary);
    if (*seen) co_await respond_unary(exchange, **seen, "{}");
  }
  Task<void> operator()(http::Exchange& exchange) const { return serve(seen, exchange); }
};

CallInfo info_of(std::string_view headers) {
  std::optional<CallInfo> seen;
  RawClient client(InfoHandler{&seen});
  (void)client.talk(request("application/json", headers, "{}"));
  return seen.value_or(CallInfo{});
}

TEST(CallInfo, TakesTimesFromHeaders) {
  const auto before = std::chrono::steady_clock::now();
  const CallInfo call =
      info_of("Connect-Timeout-Ms: 9999999999\r\nKeepalive-Ping-Interval: 50\r\n");
  EXPECT_EQ(call.timeout, std::chrono::milliseconds(9999999999));
  EXPECT_GE(*call.deadline, before + *call.timeout);
  EXPECT_EQ(call.keepalive, std::chrono::seconds(50));
  EXPECT_EQ(info_of("").timeout, std::nullopt);
  EXPECT_EQ(info_of("").deadline, std::nullopt);
  EXPECT_EQ(info_of("").keepalive, std::chrono::seconds(90));
  EXPECT_EQ(info_of("Connect-Timeout-Ms: 0\r\n").timeout, std::chrono::milliseconds(0));
  EXPECT_EQ(info_of("Keepalive-Ping-Interval: x\r\n").keepalive, std::chrono::seconds(90));
  EXPECT_EQ(info_of("Keepalive-Ping-Interval: 0\r\n").keepalive, std::chrono::seconds(1));
  EXPECT_EQ(info_of("Keepalive-Ping-Interval: -5\r\n").keepalive, std::chrono::seconds(1));
}

// Sends back every message of a client stream as it comes.
Task<void> client_stream(http::Exchange& exchange) {
  const auto call = co_await accept_call(exchange, CallKind::kStream);
  if (!call) co_return;
  EnvelopeReader reader(exchange.body(), kLimit);
  StreamWriter writer(exchange, *call);
  for (;;) {
    auto message = co_await reader.next();
    if (!message) {
      (void)co_await writer.finish(message.error());
      co_return;
    }
    if (!*message) break;
    (void)co_await writer.send(cat('<', **message, '>'));
  }
  (void)co_await writer.finish(std::nullopt);
}

TEST(EnvelopeReader, HandsOutMessagesAsTheyArrive) {
  RawClient client(client_stream);
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  const std::string first = envelope("one");
  client.send(cat("8\r\n", first, "\r\n"));
  EXPECT_THAT(client.read_through("<one>"), HasSubstr("200 OK"));
  // One message in two chunks, two in one.
  const std::string two = envelope("two");
  client.send(cat("2\r\n", two.substr(0, 2), "\r\n6\r\n", two.substr(2), "\r\n"));
  EXPECT_THAT(client.read_through("<two>"), EndsWith("<two>"));
  client.send(cat("10\r\n", envelope("333"), envelope("444"), "\r\n"));
  EXPECT_THAT(client.read_through("<444>"), HasSubstr("<333>"));
  client.send("0\r\n\r\n");
  EXPECT_THAT(client.read_through("0\r\n\r\n"), HasSubstr("{}"));
}

TEST(EnvelopeReader, AnErrorIsAnsweredBeforeTheBodyEnds) {
  RawClient client(client_stream);
  client.send(
      "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/connect+json\r\n"
      "Transfer-Encoding: chunked\r\n\r\n");
  client.send(cat("7\r\n", envelope("{}", 1), "\r\n"));
  EXPECT_THAT(client.read_through("}}"), HasSubstr(end_with("invalid_argument")));
}

// A body in memory.
class TextBody final : public http::BodyReader {
 public:
  explicit TextBody(std::string text) : text_(std::move(text)) {}
  Task<Result<size_t>> read(std::span<char> buffer) override {
    const size_t count = text_.copy(buffer.data(), buffer.size(), at_);
    at_ += count;
    co_return count;
  }
  std::optional<uint64_t> length() const override { return text_.size(); }

 private:
  const std::string text_;
  size_t at_ = 0;
};

TEST(EnvelopeReader, KeepsNoMemoryOfALongMessage) {
  constexpr size_t kLong = 8u << 20;
  boost::asio::io_context loop{1};
  // The short ones are received with the end of what is before them.
  TextBody body(cat(envelope(std::string(kLong, 'a')), envelope("b"), envelope("c"),
                    envelope(std::string(kLong, 'd')), envelope("e")));
  EnvelopeReader reader(body, kLong);
  const auto next = [&] { return net::testing::run(loop, reader.next()).value().value(); };
  const auto in_use = [] {
    const struct mallinfo2 info = ::mallinfo2();
    return info.uordblks + info.hblkhd;
  };
  const size_t before = in_use();
  EXPECT_TRUE(next() == std::string(kLong, 'a'));
  EXPECT_LT(in_use(), before + (1u << 20));
  EXPECT_EQ(next(), "b");
  EXPECT_EQ(next(), "c");
  EXPECT_TRUE(next() == std::string(kLong, 'd'));
  EXPECT_EQ(next(), "e");
  EXPECT_FALSE(net::testing::run(loop, reader.next()).value());
  EXPECT_LT(in_use(), before + (1u << 20));
}

TEST(Errors, MapToHttpStatusAndJson) {
  const std::pair<Code, int> expected[] = {
      {Code::kCanceled, 499},           {Code::kUnknown, 500},
      {Code::kInvalidArgument, 400},    {Code::kDeadlineExceeded, 504},
      {Code::kNotFound, 404},           {Code::kAlreadyExists, 409},
      {Code::kPermissionDenied, 403},   {Code::kResourceExhausted, 429},
      {Code::kFailedPrecondition, 400}, {Code::kAborted, 409},
      {Code::kOutOfRange, 400},         {Code::kUnimplemented, 501},
      {Code::kInternal, 500},           {Code::kUnavailable, 503},
      {Code::kDataLoss, 500},           {Code::kUnauthenticated, 401},
  };
  for (const auto& [code, status] : expected) EXPECT_EQ(http_status(code), status);
  EXPECT_EQ(error_json(Error(Code::kNotFound, "no \"x\"\n")),
            R"({"code":"not_found","message":"no \"x\"\n"})");
}

TEST(Gunzip, JoinsMembersAndRefusesWhatIsBroken) {
  EXPECT_EQ(gunzip(gzip("ab") + gzip("cd"), 100).value(), "abcd");
  EXPECT_EQ(gunzip(gzip(std::string(1'000'000, 'x')), 2'000'000)->size(), 1'000'000u);
  const std::string packed = gzip("abcdef");
  EXPECT_EQ(gunzip(packed.substr(0, packed.size() - 1), 100).error().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(gunzip("", 100).error().code(), Code::kInvalidArgument);
  EXPECT_EQ(gunzip(packed + "x", 100).error().code(), Code::kInvalidArgument);
}

}  // namespace
}  // namespace alcove::connect

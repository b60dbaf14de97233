// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/client_connection.h"

#include <utility>

#include "base/strings.h"
#include "http/framing.h"
#include "http/head_writer.h"
#include "http/message_body.h"
#include "http/read_buffer.h"
#include "http/wire_parser.h"

namespace alcove::http {
namespace {

// A server that sends 1xx answers without end is not waited for.
constexpr int kMostInterim = 16;

// Methods for which an empty body needs no Content-Length: 0.
bool usually_without_body(std::string_view method) {
  return method != "POST" && method != "PUT" && method != "PATCH";
}

}  // namespace

struct ClientConnection::Impl {
  Impl(std::unique_ptr<net::Stream> used, size_t limit)
      : stream(std::move(used)), header_limit(limit) {}

  Result<void> take_length(uint64_t count);
  Task<Result<ParsedResponse>> read_one_head();

  std::unique_ptr<net::Stream> stream;
  const size_t header_limit;
  ReadBuffer buffer;

  // The request under way.
  bool request_chunked = false;
  uint64_t request_left = 0;
  bool request_finished = false;
  bool request_failed = false;

  // The answer under way.
  std::optional<MessageBody> body;
  bool keep_alive = false;
};

ClientConnection::ClientConnection(std::unique_ptr<net::Stream> stream, size_t header_limit)
    : impl_(std::make_unique<Impl>(std::move(stream), header_limit)) {}
ClientConnection::~ClientConnection() = default;
ClientConnection::ClientConnection(ClientConnection&&) noexcept = default;
ClientConnection& ClientConnection::operator=(ClientConnection&&) noexcept = default;

Result<void> ClientConnection::Impl::take_length(uint64_t count) {
  if (request_finished) return fail(Code::kInternal, "no request body is under way");
  if (request_chunked) return {};
  if (count > request_left) {
    request_failed = true;
    return fail(Code::kInternal, "more body than the announced Content-Length");
  }
  request_left -= count;
  return {};
}

Task<Result<void>> ClientConnection::write_head(const RequestHead& head, BodyLength length,
                                                std::string_view first_body) {
  impl_->request_chunked = !length;
  impl_->request_left = length.value_or(0);
  impl_->request_finished = false;
  impl_->request_failed = false;
  impl_->body.reset();
  impl_->keep_alive = false;

  // The parts of the request line come from another request's line or from us; a blank or line
  // end in them would make a second request.
  for (const std::string_view part :
       {std::string_view(head.method), std::string_view(head.target)}) {
    for (const char c : part) {
      if (static_cast<unsigned char>(c) <= 0x20 || c == 0x7f) {
        co_return fail(Code::kInvalidArgument, "forbidden characters in the request line");
      }
    }
    if (part.empty()) co_return fail(Code::kInvalidArgument, "empty method or target");
  }
  std::string text = cat(head.method, ' ', head.target, " HTTP/1.1\r\n");
  ALCOVE_CO_TRY(append_fields(text, head.headers));
  if (!length) {
    text += "Transfer-Encoding: chunked\r\n";
  } else if (*length > 0 || !usually_without_body(head.method)) {
    text += cat("Content-Length: ", *length, "\r\n");
  }
  text += "\r\n";
  std::string_view end;
  if (!first_body.empty()) {
    ALCOVE_CO_TRY(impl_->take_length(first_body.size()));
    if (!length) {
      append_chunk_size(text, first_body.size());
      end = "\r\n";
    }
  }
  if (length && impl_->request_left == 0) impl_->request_finished = true;
  const std::string_view pieces[] = {text, first_body, end};
  auto sent = co_await impl_->stream->write(pieces);
  if (!sent) impl_->request_failed = true;
  co_return sent;
}

Task<Result<void>> ClientConnection::write_body(std::string_view data) {
  if (data.empty()) co_return Result<void>();
  ALCOVE_CO_TRY(impl_->take_length(data.size()));
  std::string size;
  if (impl_->request_chunked) append_chunk_size(size, data.size());
  const std::string_view pieces[] = {size, data, impl_->request_chunked ? "\r\n" : ""};
  auto sent = co_await impl_->stream->write(pieces);
  if (!sent) impl_->request_failed = true;
  co_return sent;
}

Task<Result<void>> ClientConnection::finish_body(std::string_view last) {
  if (impl_->request_finished && last.empty()) co_return Result<void>();
  ALCOVE_CO_TRY(impl_->take_length(last.size()));
  std::string size;
  if (impl_->request_chunked && !last.empty()) append_chunk_size(size, last.size());
  if (!impl_->request_chunked && impl_->request_left > 0) {
    impl_->request_failed = true;
    co_return fail(Code::kInternal, "less body than the announced Content-Length");
  }
  const std::string_view pieces[] = {size, last,
                                     impl_->request_chunked && !last.empty() ? "\r\n" : "",
                                     impl_->request_chunked ? "0\r\n\r\n" : ""};
  auto sent = co_await impl_->stream->write(pieces);
  if (sent) {
    impl_->request_finished = true;
  } else {
    impl_->request_failed = true;
  }
  co_return sent;
}

Task<Result<ParsedResponse>> ClientConnection::Impl::read_one_head() {
  ParsedResponse response;
  HeadScan scan;
  for (;;) {
    HeadParse parse = parse_response_head(buffer.data(), header_limit, scan, response);
    switch (parse.status) {
      case HeadParse::Status::kDone:
        buffer.consume(parse.size);
        co_return response;
      case HeadParse::Status::kTooLarge:
        co_return fail(Code::kInvalidArgument, "the head of the answer is too large");
      case HeadParse::Status::kInvalid:
        co_return fail(Code::kInvalidArgument, cat("broken answer: ", parse.problem));
      case HeadParse::Status::kNeedMore:
        break;
    }
    ALCOVE_CO_TRY_ASSIGN(const size_t count, co_await stream->read_some(buffer.prepare()));
    if (count == 0) {
      co_return fail(Code::kUnavailable, "the peer closed the connection before its answer");
    }
    buffer.commit(count);
  }
}

Task<Result<ResponseHead>> ClientConnection::read_head(std::string_view request_method) {
  for (int i = 0; i < kMostInterim; ++i) {
    ALCOVE_CO_TRY_ASSIGN(ParsedResponse response, co_await impl_->read_one_head());
    const int status = response.head.status;
    if (status < 100) co_return fail(Code::kInvalidArgument, "broken answer: status below 100");
    if (status < 200 && status != 101) continue;
    ALCOVE_CO_TRY_ASSIGN(const Framing framing,
                         response_framing(response.head, response.version_minor, request_method));
    impl_->body.emplace(*impl_->stream, impl_->buffer, framing);
    impl_->keep_alive =
        status != 101 && wants_keep_alive(response.head.headers, response.version_minor);
    co_return std::move(response.head);
  }
  co_return fail(Code::kInvalidArgument, "too many interim answers");
}

BodyReader& ClientConnection::body() { return *impl_->body; }

bool ClientConnection::reusable() const {
  return impl_->request_finished && !impl_->request_failed && impl_->keep_alive && impl_->body &&
         impl_->body->complete() && impl_->body->kind() != Framing::Kind::kUntilClose &&
         impl_->buffer.empty();
}

bool ClientConnection::body_ends_by_close() const {
  return impl_->body && impl_->body->kind() == Framing::Kind::kUntilClose;
}

net::Stream& ClientConnection::stream() { return *impl_->stream; }
std::string ClientConnection::take_read_ahead() { return impl_->buffer.take(); }

Task<Result<Response>> fetch(ClientConnection& connection, RequestHead head, std::string body,
                             uint64_t response_limit) {
  const auto sent = co_await connection.write_head(head, body.size(), body);
  // A server may answer and close before it has read everything.
  if (!sent && sent.error().code() != Code::kUnavailable) co_return fail(sent.error());
  auto answer = co_await connection.read_head(head.method);
  if (!answer && !sent) co_return fail(sent.error());
  if (!answer) co_return fail(answer.error());
  Response response{.status = answer->status, .headers = std::move(answer->headers), .body = {}};
  ALCOVE_CO_TRY_ASSIGN(response.body, co_await connection.body().read_all(response_limit));
  co_return response;
}

}  // namespace alcove::http

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "http/wire_parser.h"

#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/none.hpp>

namespace alcove::http {
namespace {

namespace beast_http = boost::beast::http;
using boost::beast::error_code;
using boost::beast::string_view;

// Fills our message instead of Beast's own containers. Only the head is parsed: bodies are read by
// MessageBody.
template <bool kIsRequest>
class HeadOnlyParser : public beast_http::basic_parser<kIsRequest> {
 public:
  explicit HeadOnlyParser(size_t limit) {
    this->skip(true);
    this->header_limit(static_cast<std::uint32_t>(limit));
    this->body_limit(boost::none);
  }

 protected:
  void on_request_impl(beast_http::verb, string_view, string_view, int, error_code&) override {}
  void on_response_impl(int, string_view, int, error_code&) override {}
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(string_view, error_code&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, string_view, error_code&) override { return 0; }
  void on_finish_impl(error_code&) override {}
};

class RequestParser final : public HeadOnlyParser<true> {
 public:
  RequestParser(size_t limit, RequestHead& head) : HeadOnlyParser(limit), head_(head) {}

 private:
  void on_request_impl(beast_http::verb, string_view method, string_view target, int version,
                       error_code&) override {
    head_.method.assign(method.data(), method.size());
    head_.target.assign(target.data(), target.size());
    head_.version_minor = version % 10;
  }
  void on_field_impl(beast_http::field, string_view name, string_view value, error_code&) override {
    head_.headers.add(std::string(name.data(), name.size()),
                      std::string(value.data(), value.size()));
  }

  RequestHead& head_;
};

class ResponseParser final : public HeadOnlyParser<false> {
 public:
  ResponseParser(size_t limit, ParsedResponse& response)
      : HeadOnlyParser(limit), response_(response) {}

 private:
  void on_response_impl(int status, string_view, int version, error_code&) override {
    response_.head.status = status;
    response_.version_minor = version % 10;
  }
  void on_field_impl(beast_http::field, string_view name, string_view value, error_code&) override {
    response_.head.headers.add(std::string(name.data(), name.size()),
                               std::string(value.data(), value.size()));
  }

  ParsedResponse& response_;
};

// The length of "HTTP/1.1 200".
constexpr size_t kBareStatusLine = 12;

enum class Folding { kRefused, kAllowed };

HeadParse invalid(std::string problem) {
  return {.status = HeadParse::Status::kInvalid, .problem = std::move(problem)};
}

// Looks for the empty line that ends a head. kDone carries its size without the skipped lines.
HeadParse find_end(std::string_view data, size_t limit, HeadScan& scan, Folding folding) {
  for (;;) {
    if (scan.line > limit) return {.status = HeadParse::Status::kTooLarge};
    const void* found = data.size() > scan.line
                            ? std::memchr(data.data() + scan.line, '\n', data.size() - scan.line)
                            : nullptr;
    if (found == nullptr) {
      if (data.size() > limit) return {.status = HeadParse::Status::kTooLarge};
      return {};
    }
    const auto end = static_cast<size_t>(static_cast<const char*>(found) - data.data());
    if (end == scan.line || data[end - 1] != '\r') {
      return invalid("a line of the head does not end with CRLF");
    }
    const size_t length = end - 1 - scan.line;
    const bool at_start = scan.line == scan.skipped;
    if (length == 0 && at_start) {
      scan.line = scan.skipped = end + 1;
      continue;
    }
    if (length == 0) {
      if (end >= limit) return {.status = HeadParse::Status::kTooLarge};
      return {.status = HeadParse::Status::kDone, .size = end + 1};
    }
    const char first = data[scan.line];
    if (folding == Folding::kRefused && (first == ' ' || first == '\t')) {
      return invalid("a header field is folded over several lines");
    }
    scan.line = end + 1;
  }
}

template <typename Parser>
HeadParse run_parser(Parser& parser, std::string_view head, HeadParse found) {
  error_code error;
  const size_t used = parser.put(boost::asio::buffer(head.data(), head.size()), error);
  if (error && error != beast_http::error::need_more) return invalid(error.message());
  if (!parser.is_header_done() || used != head.size()) return invalid("the head is not complete");
  return found;
}

}  // namespace

HeadParse parse_request_head(std::string_view data, size_t limit, HeadScan& scan,
                             RequestHead& head) {
  HeadParse found = find_end(data, limit, scan, Folding::kRefused);
  if (found.status != HeadParse::Status::kDone) return found;
  RequestParser parser(limit + 1, head);
  const std::string_view text = data.substr(scan.skipped, found.size - scan.skipped);
  return run_parser(parser, text, std::move(found));
}

HeadParse parse_response_head(std::string_view data, size_t limit, HeadScan& scan,
                              ParsedResponse& response) {
  HeadParse found = find_end(data, limit, scan, Folding::kAllowed);
  if (found.status != HeadParse::Status::kDone) return found;
  ResponseParser parser(limit + 2, response);
  const std::string_view head = data.substr(scan.skipped, found.size - scan.skipped);
  if (head.find("\r\n") != kBareStatusLine) return run_parser(parser, head, std::move(found));
  // The blank behind the status is required (RFC 9112 section 4), but servers without a reason
  // phrase leave it out and every client takes it.
  std::string completed(head);
  completed.insert(kBareStatusLine, 1, ' ');
  return run_parser(parser, completed, std::move(found));
}

}  // namespace alcove::http

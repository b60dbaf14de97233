// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/upload.h"

#include <chrono>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <boost/asio/this_coro.hpp>

#include "agent/gzip.h"
#include "agent/idle_limit.h"
#include "agent/json_map.h"
#include "agent/media_type.h"
#include "agent/multipart.h"
#include "agent/rest.h"
#include "agent/upload_file.h"
#include "base/strings.h"
#include "connect/json_writer.h"

namespace alcove::agent {
namespace {

constexpr size_t kReadSize = 128 * 1024;
// Clients put no limit on a streamed upload: they rely on the server to drop a stalled one.
constexpr std::chrono::seconds kIdleLimit{90};

// What goes wrong becomes an answer; the body's own failures have none (the client is gone or does
// not speak HTTP).
struct Failure {
  int status = 0;
  std::string message;
};
template <typename T>
using Outcome = tl::expected<T, Failure>;

tl::unexpected<Failure> refuse(int status, std::string message) {
  return tl::unexpected<Failure>(Failure{status, std::move(message)});
}

tl::unexpected<Failure> file_failure(const Error& error, const http::BodyReader& body) {
  const int status = UploadFile::status_of(error);
  std::string message = error.message();
  if (status == 507) {
    message = "not enough disk space available";
    if (body.length()) message += cat(" to store ", *body.length(), " bytes");
  }
  return refuse(status, std::move(message));
}

tl::unexpected<Failure> body_failure(const Error& error) {
  return refuse(error.code() == Code::kInvalidArgument ? 400 : 500, error.message());
}

using Files = std::vector<UploadedFile>;

Task<Outcome<Files>> receive_single(http::Exchange& exchange, http::BodyReader& body,
                                    FilePools& pools, const UploadRequest& request) {
  if (!request.path) co_return refuse(400, "the path parameter is missing");
  auto path = resolve_path(*request.path, request.base);
  if (!path) co_return refuse(400, path.error().message());
  const FileThreads threads = pools.at(*path);
  UploadFile file({threads, exchange}, *std::move(path), request.owner, request.metadata);
  for (;;) {
    const auto count = co_await body.read(file.room());
    if (!count) co_return body_failure(count.error());
    if (*count == 0) break;
    const auto added = co_await file.filled(*count);
    if (!added) co_return file_failure(added.error(), body);
  }
  auto stored = co_await file.finish();
  if (!stored) co_return file_failure(stored.error(), body);
  Files files;
  files.push_back(*std::move(stored));
  co_return files;
}

// The target of one part of a form, not used by an earlier one.
Outcome<std::string> part_path(const UploadRequest& request, const MultipartParser::Part& part,
                               std::set<std::string>& used) {
  if (!request.path && !part.file_name) {
    return refuse(400, "a file needs a filename or the path parameter");
  }
  auto path = resolve_path(request.path ? *request.path : *part.file_name, request.base);
  if (!path) return refuse(400, path.error().message());
  if (!used.insert(*path).second) {
    return refuse(400, cat("path '", *path, "' is used by more than one file of the request"));
  }
  return *std::move(path);
}

Task<Outcome<Files>> receive_form(http::Exchange& exchange, http::BodyReader& body,
                                  FilePools& pools, const UploadRequest& request,
                                  std::string boundary) {
  MultipartParser parser(boundary);
  std::vector<char> buffer(kReadSize);
  std::set<std::string> used;
  std::unique_ptr<UploadFile> file;
  Files files;
  for (;;) {
    auto event = parser.next();
    if (!event) co_return refuse(500, event.error().message());
    switch (event->kind) {
      case MultipartParser::Kind::kNeedMore: {
        const auto count = co_await body.read(buffer);
        if (!count) co_return body_failure(count.error());
        if (*count == 0) {
          parser.feed_end();
        } else {
          parser.feed(std::string_view(buffer.data(), *count));
        }
        break;
      }
      case MultipartParser::Kind::kPart: {
        if (event->part.name != "file") break;
        auto path = part_path(request, event->part, used);
        if (!path) co_return tl::unexpected<Failure>(std::move(path).error());
        const FileJobs jobs(pools.at(*path), exchange);
        file =
            std::make_unique<UploadFile>(jobs, *std::move(path), request.owner, request.metadata);
        break;
      }
      case MultipartParser::Kind::kData: {
        if (!file) break;
        const auto added = co_await file->add(event->data);
        if (!added) co_return file_failure(added.error(), body);
        break;
      }
      case MultipartParser::Kind::kPartEnd: {
        if (!file) break;
        auto stored = co_await file->finish();
        file.reset();
        if (!stored) co_return file_failure(stored.error(), body);
        files.push_back(*std::move(stored));
        break;
      }
      case MultipartParser::Kind::kEnd: {
        // The epilogue means nothing, but it belongs to the body.
        for (;;) {
          const auto count = co_await body.read(buffer);
          if (!count) co_return body_failure(count.error());
          if (*count == 0) co_return files;
        }
      }
    }
  }
}

std::string encode_files(const Files& files) {
  std::string out = "[";
  for (const UploadedFile& file : files) {
    if (out.size() > 1) out += ',';
    out += "{\"path\":";
    connect::append_json_string(out, file.path);
    out += ",\"name\":";
    connect::append_json_string(out, base_name(file.path));
    out += ",\"type\":\"file\"";
    if (!file.metadata.empty()) {
      out += ",\"metadata\":";
      append_json_map(out, file.metadata);
    }
    out += '}';
  }
  out += ']';
  return out;
}

}  // namespace

Task<void> receive_upload(http::Exchange& exchange, FilePools& pools, UploadRequest request) {
  const auto content_type =
      parse_media_type(exchange.request().headers.get("Content-Type").value_or(""));
  IdleLimitedBody received(co_await boost::asio::this_coro::executor, exchange, kIdleLimit);
  std::optional<GunzipBody> decompressed;
  if (request.compressed) decompressed.emplace(received);
  http::BodyReader& body = decompressed ? static_cast<http::BodyReader&>(*decompressed) : received;
  Outcome<Files> files;
  if (content_type && content_type->value == "application/octet-stream") {
    files = co_await receive_single(exchange, body, pools, request);
  } else if (content_type && content_type->value.starts_with("multipart/")) {
    const auto boundary = content_type->parameters.find("boundary");
    if (boundary == content_type->parameters.end() || boundary->second.empty()) {
      files = refuse(500, "multipart: the boundary is missing");
    } else {
      files = co_await receive_form(exchange, body, pools, request, boundary->second);
    }
  } else {
    files = refuse(400, "Content-Type must be multipart/form-data or application/octet-stream");
  }
  if (!files) {
    co_await respond_rest_error(exchange, files.error().status, files.error().message);
    co_return;
  }
  http::Response response;
  response.headers = {{"Content-Type", "application/json"}};
  response.body = encode_files(*files);
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace alcove::agent

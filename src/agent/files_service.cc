// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/files_service.h"

#include <ctime>
#include <utility>

#include "agent/compose.h"
#include "agent/download.h"
#include "agent/rest.h"
#include "agent/upload.h"
#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr uint64_t kMaxComposeBody = 1ull << 20;
// More paths are not looked at on the loop.
constexpr size_t kMostLooks = 100;

FileThreads threads_for(FilePools& pools, const ComposeRequest& request) {
  if (request.sources.size() > kMostLooks) return pools.anywhere();
  FileThreads threads = pools.at(request.destination);
  for (const std::string& source : request.sources) {
    if (!threads.may_hang) threads = pools.at(source);
  }
  return threads;
}

}  // namespace

Task<std::optional<FilesQuery>> FilesService::authorize(http::Exchange& exchange,
                                                        FileOperation operation) {
  auto query = parse_files_query(exchange.request().query());
  if (!query) {
    (void)co_await exchange.respond(text_response(400, query.error().message()));
    co_return std::nullopt;
  }
  const auto allowed = check_file_access(exchange.request().headers, query->access(operation),
                                         state_.access_token(), std::time(nullptr));
  if (!allowed) {
    co_await respond_rest_error(exchange, 401, allowed.error().message());
    co_return std::nullopt;
  }
  co_return *std::move(query);
}

Task<std::optional<User>> FilesService::find_user(http::Exchange& exchange,
                                                  const std::optional<std::string>& username) {
  const std::string& name = username && !username->empty() ? *username : state_.default_user();
  auto user = users_.find(name);
  if (!user) {
    co_await respond_rest_error(exchange, 401, user.error().message());
    co_return std::nullopt;
  }
  co_return *std::move(user);
}

Task<void> FilesService::download(http::Exchange& exchange) {
  const auto query = co_await authorize(exchange, FileOperation::kRead);
  if (!query) co_return;
  const auto user = co_await find_user(exchange, query->username);
  if (!user) co_return;
  auto path = resolve_path(query->path.value_or(""), state_.path_base(*user));
  if (!path) {
    co_await respond_rest_error(exchange, 400, path.error().message());
    co_return;
  }
  const FileThreads threads = pools_.at(*path);
  co_await send_download(exchange, FileJobs(threads, exchange), *std::move(path));
}

Task<void> FilesService::upload(http::Exchange& exchange) {
  auto query = co_await authorize(exchange, FileOperation::kWrite);
  if (!query) co_return;
  const auto encoding = exchange.request().headers.get("Content-Encoding").value_or("identity");
  const bool gzip = equal_ignoring_case(trim(encoding), "gzip");
  if (!gzip && !trim(encoding).empty() && !equal_ignoring_case(trim(encoding), "identity")) {
    co_await respond_rest_error(exchange, 400,
                                cat("unsupported Content-Encoding '", encoding, "'"));
    co_return;
  }
  auto user = co_await find_user(exchange, query->username);
  if (!user) co_return;
  auto metadata = parse_metadata_headers(exchange.request().headers);
  if (!metadata) {
    co_await respond_rest_error(exchange, 400, metadata.error().message());
    co_return;
  }
  UploadRequest request;
  request.base = state_.path_base(*user);
  request.path = std::move(query->path);
  request.owner = *std::move(user);
  request.metadata = *std::move(metadata);
  request.compressed = gzip;
  co_await receive_upload(exchange, pools_, std::move(request));
}

Task<void> FilesService::compose(http::Exchange& exchange) {
  const auto body = co_await exchange.body().read_all(kMaxComposeBody);
  if (!body) {
    if (body.error().code() == Code::kResourceExhausted) {
      co_await respond_rest_error(exchange, 413, body.error().message());
    }
    co_return;
  }
  auto request = decode_compose(*body);
  if (!request) {
    co_await respond_rest_error(exchange, 400, request.error().message());
    co_return;
  }
  const auto user = co_await find_user(exchange, request->username);
  if (!user) co_return;
  if (const auto resolved = resolve_paths(*request, state_.path_base(*user)); !resolved) {
    co_await respond_rest_error(exchange, 400, resolved.error().message());
    co_return;
  }
  const std::string destination = request->destination;
  const FileThreads threads = threads_for(pools_, *request);
  auto job = [wanted = *std::move(request), owner = *user] {
    return compose_files(wanted.sources, wanted.destination, owner);
  };
  if (const auto done = co_await FileJobs(threads, exchange).run(std::move(job)); !done) {
    co_await respond_rest_error(exchange, compose_status(done.error()), done.error().message());
    co_return;
  }
  http::Response response;
  response.headers = {{"Content-Type", "application/json"}};
  response.body = encode_composed(destination);
  (void)co_await exchange.respond(std::move(response));
}

}  // namespace alcove::agent

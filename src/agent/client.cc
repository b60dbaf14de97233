// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "agent/client.h"

#include <utility>

#include "base/strings.h"

namespace alcove::agent {
namespace {

constexpr uint64_t kMaxAnswer = 64 * 1024;

Task<Result<http::Response>> call(http::ClientConnection& connection, http::RequestHead head,
                                  std::string body, std::chrono::milliseconds limit,
                                  uint64_t max_answer = kMaxAnswer) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  connection.stream().set_read_deadline(deadline);
  connection.stream().set_write_deadline(deadline);
  auto response = co_await http::fetch(connection, std::move(head), std::move(body), max_answer);
  connection.stream().set_read_deadline(std::nullopt);
  connection.stream().set_write_deadline(std::nullopt);
  co_return response;
}

}  // namespace

Task<Result<void>> initialize(http::ClientConnection& connection, InitRequest request,
                              std::optional<std::string> control_token,
                              std::chrono::milliseconds limit) {
  http::RequestHead head;
  head.method = "POST";
  head.target = "/init";
  head.headers = {{"Host", "localhost"}, {"Content-Type", "application/json"}};
  if (control_token) head.headers.add(std::string(kControlHeader), *std::move(control_token));
  auto response = co_await call(connection, std::move(head), encode_init(request), limit);
  if (!response) co_return fail(response.error().context("agent init"));
  if (response->status == 401) {
    co_return fail(Code::kUnauthenticated, cat("agent init refused: ", response->body));
  }
  if (response->status != 204) {
    co_return fail(Code::kInternal, cat("agent init: HTTP ", response->status));
  }
  co_return Result<void>();
}

Task<Result<void>> check_health(http::ClientConnection& connection,
                                std::chrono::milliseconds limit) {
  http::RequestHead head;
  head.method = "GET";
  head.target = "/health";
  head.headers = {{"Host", "localhost"}};
  const auto response = co_await call(connection, std::move(head), {}, limit);
  if (!response) co_return fail(response.error().context("agent health"));
  if (response->status < 200 || response->status > 299) {
    co_return fail(Code::kUnavailable, cat("agent health: HTTP ", response->status));
  }
  co_return Result<void>();
}

Task<Result<std::vector<JournalLine>>> read_journal(http::ClientConnection& connection,
                                                    std::string control_token,
                                                    std::chrono::milliseconds limit) {
  http::RequestHead head;
  head.method = "GET";
  head.target = "/journal";
  head.headers = {{"Host", "localhost"}};
  head.headers.add(std::string(kControlHeader), std::move(control_token));
  const auto response = co_await call(connection, std::move(head), {}, limit, kMaxJournalBody);
  if (!response) co_return fail(response.error().context("agent journal"));
  if (response->status != 200) {
    co_return fail(Code::kUnimplemented, cat("agent journal: HTTP ", response->status));
  }
  co_return decode_journal(response->body);
}

}  // namespace alcove::agent

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/request_body.h"

#include <utility>

#include "base/strings.h"

namespace alcove::api {

Task<ApiResult<std::string>> read_body(http::Exchange& exchange, const BodyLimits& limits) {
  const auto too_large = [&limits] {
    return refuse(413, cat("the request body is larger than ", limits.size >> 20, " MiB"));
  };
  http::BodyReader& body = exchange.body();
  if (body.length().value_or(0) > limits.size) co_return too_large();
  exchange.limit_body_time(limits.idle, limits.total);
  auto content = co_await body.read_all(limits.size);
  if (content) co_return *std::move(content);
  switch (content.error().code()) {
    case Code::kResourceExhausted:
      co_return too_large();
    case Code::kDeadlineExceeded:
      exchange.close_after();
      co_return refuse(408, "the request body did not arrive in time");
    default:
      co_return refuse(400, cat("the request body cannot be read: ", content.error().message()));
  }
}

}  // namespace alcove::api

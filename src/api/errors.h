// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "http/message.h"

namespace alcove::api {

// A refusal as the client sees it: {"code": <status>, "message": ..., "error_code"?: ...}. Clients
// judge by `code` and fail on any other shape, so this is the only way to answer with an error.
struct ApiError {
  int status = 500;
  std::string message;
  // A word for programs ("sandbox_capacity_unavailable"); empty = none.
  std::string error_code = {};
};

template <typename T = void>
using ApiResult = tl::expected<T, ApiError>;

inline tl::unexpected<ApiError> refuse(int status, std::string message,
                                       std::string error_code = {}) {
  return tl::unexpected<ApiError>(ApiError{status, std::move(message), std::move(error_code)});
}
inline tl::unexpected<ApiError> refuse(ApiError error) {
  return tl::unexpected<ApiError>(std::move(error));
}

// A request that does not fit the schema: 400, "validation error: <what>".
tl::unexpected<ApiError> refuse_invalid(std::string_view what);

// A field or feature that the protocol has and this server does not yet.
ApiError not_available(std::string_view feature);

// Says on 429 and 503 when to come again.
http::Response error_response(const ApiError& error);
// For a request that may have been carried out: clients are told not to repeat it by themselves.
http::Response final_error_response(const ApiError& error);

}  // namespace alcove::api

// Like ALCOVE_TRY and ALCOVE_TRY_ASSIGN, for functions that return ApiResult.
#define ALCOVE_API_TRY(expr)                                              \
  do {                                                                    \
    auto alcove_api_result = (expr);                                      \
    if (!alcove_api_result) {                                             \
      return ::alcove::api::refuse(std::move(alcove_api_result).error()); \
    }                                                                     \
  } while (false)
#define ALCOVE_API_TRY_ASSIGN(target, expr) \
  ALCOVE_API_TRY_ASSIGN_INNER(ALCOVE_CONCAT(alcove_api_result_, __LINE__), target, expr)
#define ALCOVE_API_TRY_ASSIGN_INNER(result, target, expr)    \
  auto result = (expr);                                      \
  if (!result) {                                             \
    return ::alcove::api::refuse(std::move(result).error()); \
  }                                                          \
  target = std::move(result).value()

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/errors.h"

#include <boost/json/object.hpp>

#include "api/json_reply.h"
#include "base/strings.h"

namespace alcove::api {
namespace {

// Messages quote what the client sent: of that at most so much comes back.
constexpr size_t kMaxMessage = 1000;

// JSON must be UTF-8, and paths and queries may hold any bytes.
std::string presentable(std::string_view message) {
  std::string text(message.substr(0, kMaxMessage));
  if (is_valid_utf8(text)) return text;
  for (char& c : text) {
    if (static_cast<unsigned char>(c) >= 0x80) c = '?';
  }
  return text;
}

}  // namespace

tl::unexpected<ApiError> refuse_invalid(std::string_view what) {
  return refuse(400, cat("validation error: ", what));
}

ApiError not_available(std::string_view feature) {
  return ApiError{400, cat(feature, " is not available on this server yet.")};
}

http::Response error_response(const ApiError& error) {
  boost::json::object body{{"code", error.status}, {"message", presentable(error.message)}};
  if (!error.error_code.empty()) body["error_code"] = error.error_code;
  http::Response response = json_response(error.status, body);
  if (error.status == 429 || error.status == 503) response.headers.set("Retry-After", "1");
  return response;
}

http::Response final_error_response(const ApiError& error) {
  http::Response response = error_response(error);
  response.headers.set("Should-Retry", "false");
  return response;
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/connect.h"
#include "connect/json_writer.h"

namespace alcove::connect {

int http_status(Code code) {
  switch (code) {
    case Code::kCanceled:
      return 499;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
    case Code::kOutOfRange:
      return 400;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kNotFound:
      return 404;
    case Code::kAlreadyExists:
    case Code::kAborted:
      return 409;
    case Code::kPermissionDenied:
      return 403;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kUnauthenticated:
      return 401;
    case Code::kUnknown:
    case Code::kInternal:
    case Code::kDataLoss:
      break;
  }
  return 500;
}

std::string error_json(const Error& error) {
  std::string out = "{\"code\":";
  append_json_string(out, code_name(error.code()));
  out += ",\"message\":";
  append_json_string(out, error.message());
  out += '}';
  return out;
}

}  // namespace alcove::connect

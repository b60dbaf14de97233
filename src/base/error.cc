// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "base/error.h"

#include <string.h>

#include <cerrno>
#include <utility>

namespace alcove {
namespace {

Code code_from_errno(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ESRCH:
      return Code::kNotFound;
    case EEXIST:
      return Code::kAlreadyExists;
    case EACCES:
    case EPERM:
      return Code::kPermissionDenied;
    case EINVAL:
    case ENOTDIR:
    case EISDIR:
    case ENAMETOOLONG:
      return Code::kInvalidArgument;
    case ENOSPC:
    case EDQUOT:
    case ENOMEM:
    case EMFILE:
    case ENFILE:
    case EAGAIN:
      return Code::kResourceExhausted;
    case ETIMEDOUT:
      return Code::kDeadlineExceeded;
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return Code::kUnavailable;
    case ECANCELED:
      return Code::kCanceled;
    case ENOSYS:
    case EOPNOTSUPP:
      return Code::kUnimplemented;
    default:
      return Code::kInternal;
  }
}

}  // namespace

std::string_view code_name(Code code) {
  switch (code) {
    case Code::kCanceled:
      return "canceled";
    case Code::kUnknown:
      return "unknown";
    case Code::kInvalidArgument:
      return "invalid_argument";
    case Code::kDeadlineExceeded:
      return "deadline_exceeded";
    case Code::kNotFound:
      return "not_found";
    case Code::kAlreadyExists:
      return "already_exists";
    case Code::kPermissionDenied:
      return "permission_denied";
    case Code::kResourceExhausted:
      return "resource_exhausted";
    case Code::kFailedPrecondition:
      return "failed_precondition";
    case Code::kAborted:
      return "aborted";
    case Code::kOutOfRange:
      return "out_of_range";
    case Code::kUnimplemented:
      return "unimplemented";
    case Code::kInternal:
      return "internal";
    case Code::kUnavailable:
      return "unavailable";
    case Code::kDataLoss:
      return "data_loss";
    case Code::kUnauthenticated:
      return "unauthenticated";
  }
  return "unknown";
}

Error::Error(Code code, std::string message, std::source_location where)
    : code_(code), message_(std::move(message)), where_(where) {}

Error Error::from_errno(int error_number, std::string_view what, std::source_location where) {
  char buffer[128];
  std::string message(what);
  message += ": ";
  message += strerror_r(error_number, buffer, sizeof buffer);
  Error error(code_from_errno(error_number), std::move(message), where);
  error.errno_ = error_number;
  return error;
}

Error Error::context(std::string_view what) && {
  message_.insert(0, ": ");
  message_.insert(0, what);
  return std::move(*this);
}

Error Error::context(std::string_view what) const& { return Error(*this).context(what); }

}  // namespace alcove

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <source_location>
#include <string>
#include <string_view>

namespace alcove {

// What kind of failure happened. The names and meanings are those of the Connect protocol, so a
// code maps 1:1 to a Connect code and to an HTTP status.
enum class Code {
  kCanceled,
  kUnknown,
  kInvalidArgument,
  kDeadlineExceeded,
  kNotFound,
  kAlreadyExists,
  kPermissionDenied,
  kResourceExhausted,
  kFailedPrecondition,
  kAborted,
  kOutOfRange,
  kUnimplemented,
  kInternal,
  kUnavailable,
  kDataLoss,
  kUnauthenticated,
};

// snake_case name as used on the wire ("not_found").
std::string_view code_name(Code code);

// An expected failure, returned as a value. The message names the object it is about; each layer
// that passes it on may put its own words in front with context().
class [[nodiscard]] Error {
 public:
  explicit Error(Code code, std::string message,
                 std::source_location where = std::source_location::current());

  // The failure of a system call: "<what>: <strerror>", with a code derived from errno.
  static Error from_errno(int error_number, std::string_view what,
                          std::source_location where = std::source_location::current());

  Code code() const { return code_; }
  // 0 if the failure did not come from the kernel.
  int error_number() const { return errno_; }
  const std::string& message() const { return message_; }
  const std::source_location& where() const { return where_; }

  // Puts "<what>: " before the message: `return result.error().context("mount overlay")`.
  Error context(std::string_view what) &&;
  Error context(std::string_view what) const&;

 private:
  Code code_;
  int errno_ = 0;
  std::string message_;
  std::source_location where_;
};

}  // namespace alcove

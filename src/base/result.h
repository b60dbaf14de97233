// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <utility>

#include <tl/expected.hpp>

#include "base/error.h"

namespace alcove {

// A value or the Error that prevented it. Result<void> for actions.
template <typename T = void>
using Result = tl::expected<T, Error>;

// For returning an error from a function that returns Result<T>.
inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
inline tl::unexpected<Error> fail(Code code, std::string message,
                                  std::source_location where = std::source_location::current()) {
  return tl::unexpected<Error>(Error(code, std::move(message), where));
}
inline tl::unexpected<Error> fail_errno(
    int error_number, std::string_view what,
    std::source_location where = std::source_location::current()) {
  return tl::unexpected<Error>(Error::from_errno(error_number, what, where));
}

}  // namespace alcove

#define ALCOVE_CONCAT_INNER(a, b) a##b
#define ALCOVE_CONCAT(a, b) ALCOVE_CONCAT_INNER(a, b)

// Returns from the enclosing function with the error of `expr`, if it has one.
#define ALCOVE_TRY(expr)                                           \
  do {                                                             \
    auto alcove_try_result = (expr);                               \
    if (!alcove_try_result) {                                      \
      return ::alcove::fail(std::move(alcove_try_result).error()); \
    }                                                              \
  } while (false)

// The same in a coroutine.
#define ALCOVE_CO_TRY(expr)                                           \
  do {                                                                \
    auto alcove_try_result = (expr);                                  \
    if (!alcove_try_result) {                                         \
      co_return ::alcove::fail(std::move(alcove_try_result).error()); \
    }                                                                 \
  } while (false)

// Declares `target` (e.g. `auto fd` or `UniqueFd fd`) with the value of `expr`, or returns its
// error.
#define ALCOVE_TRY_ASSIGN(target, expr) \
  ALCOVE_TRY_ASSIGN_INNER(ALCOVE_CONCAT(alcove_result_, __LINE__), target, expr, return)
#define ALCOVE_CO_TRY_ASSIGN(target, expr) \
  ALCOVE_TRY_ASSIGN_INNER(ALCOVE_CONCAT(alcove_result_, __LINE__), target, expr, co_return)
#define ALCOVE_TRY_ASSIGN_INNER(result, target, expr, leave) \
  auto result = (expr);                                      \
  if (!result) {                                             \
    leave ::alcove::fail(std::move(result).error());         \
  }                                                          \
  target = std::move(result).value()

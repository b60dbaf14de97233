// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdlib>

#include "base/log.h"

// Stops the process on a bug of ours, in release builds too: the daemons are restart-safe. Never
// for input.
#define ALCOVE_ASSERT(condition)                                            \
  do {                                                                      \
    if (!(condition)) {                                                     \
      ::alcove::log_error("assertion failed: " #condition " at " __FILE__); \
      std::abort();                                                         \
    }                                                                       \
  } while (false)

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <chrono>

#include "net/task.h"

namespace alcove::net {

// Resumes after that time; earlier only if the task is canceled.
Task<void> sleep_for(std::chrono::steady_clock::duration time);

// Goes to the back of the loop's queue, so that other tasks get their turn.
Task<void> yield();

}  // namespace alcove::net

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <memory>

#include "doctor/system.h"

namespace alcove::doctor {

// The machine we run on. Its attempts fork: only for programs that have one thread.
std::unique_ptr<System> this_machine();

}  // namespace alcove::doctor

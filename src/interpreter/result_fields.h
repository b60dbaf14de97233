// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>

#include "interpreter/kernel.h"

namespace alcove::interpreter {

// A run's event as the line that clients read (protocol/code-interpreter.md 1.6 and 3.1): pure
// ASCII JSON, ends with a line feed. `timestamp` is that of printed text.
std::string event_line(const RunEvent& event, const std::string& timestamp);

// The lines that no kernel makes.
std::string keepalive_line();
std::string end_line();

}  // namespace alcove::interpreter

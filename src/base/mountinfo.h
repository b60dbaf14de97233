// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

namespace alcove {

// A path as /proc/PID/mountinfo has it: blanks, tabs, newlines and backslashes stand there as \ooo.
std::string unescape_mountinfo(std::string_view text);

}  // namespace alcove

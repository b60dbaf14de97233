// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

namespace alcove {

// Lower-case hex of arbitrary bytes.
std::string to_hex(std::string_view bytes);

}  // namespace alcove

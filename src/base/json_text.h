// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <string_view>

namespace alcove {

// The number of bytes at the front of `text` that stand for themselves in a JSON string however
// strict its reader is: printable ASCII but for '"' and '\'.
size_t plain_json_prefix(std::string_view text);

}  // namespace alcove

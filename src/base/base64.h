// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace alcove {

// Standard alphabet with padding.
void append_base64(std::string& out, std::string_view bytes);
std::string to_base64(std::string_view bytes);

// Standard or URL-safe alphabet, padded or not; nothing for anything else.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace alcove

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

namespace alcove::cli {

// The text with everything taken out that could act on a terminal or mislead its reader: control
// characters, bytes that are not UTF-8 and marks that turn the writing direction become visible
// escapes (`\x1b`, `\u202e`). File names, metadata and messages of a sandbox are hostile.
std::string printable(std::string_view text);

// How many columns printable text takes, one per character.
size_t display_width(std::string_view text);

}  // namespace alcove::cli

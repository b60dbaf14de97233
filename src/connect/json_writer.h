// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <concepts>
#include <string>
#include <string_view>

#include "base/base64.h"

namespace alcove::connect {

// Writing JSON by appending: the fast way for messages whose shape is known.

// A quoted string. What is not UTF-8 becomes U+FFFD.
void append_json_string(std::string& out, std::string_view text);

// A quoted base64 string, as messages carry bytes.
inline void append_json_bytes(std::string& out, std::string_view bytes) {
  out += '"';
  append_base64(out, bytes);
  out += '"';
}

template <std::integral T>
  requires(!std::same_as<T, bool>)
void append_json_number(std::string& out, T number) {
  out += std::to_string(number);
}

inline void append_json_bool(std::string& out, bool value) { out += value ? "true" : "false"; }

}  // namespace alcove::connect

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <string>
#include <string_view>

#include <boost/json/value.hpp>

namespace alcove::interpreter {

// JSON in pure ASCII: clients cut the stream at any byte, and at more line breaks than "\n".

// A string literal; what is no UTF-8 becomes U+FFFD.
void append_ascii_string(std::string& out, std::string_view text);
void append_ascii_json(std::string& out, const boost::json::value& value);

}  // namespace alcove::interpreter

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <boost/json/object.hpp>
#include <boost/json/value.hpp>

#include "base/result.h"
#include "connect/json_writer.h"

namespace alcove::connect {

// Reading messages of the protobuf JSON mapping (protocol/envd.md 1.2). Fields are named in
// lowerCamelCase and found under their snake_case name too; null is the same as absent; what is
// not asked for is ignored. A value of the wrong type is kInvalidArgument and names the field.

// The message, which must be an object.
Result<boost::json::object> parse_message(std::string_view text);

// The field's value; nullptr if it is absent or null.
const boost::json::value* find_field(const boost::json::object& message, std::string_view name);

// The nested message; nullptr if absent.
Result<const boost::json::object*> read_object(const boost::json::object& message,
                                               std::string_view name);
// The elements; nullptr if absent.
Result<const boost::json::array*> read_array(const boost::json::object& message,
                                             std::string_view name);

// Scalars; absent reads as the type's zero. Use find_field() where absence has a meaning.
Result<std::string> read_string(const boost::json::object& message, std::string_view name);
Result<bool> read_bool(const boost::json::object& message, std::string_view name);
// Integers may stand as numbers, also with a zero fraction or an exponent, or in strings.
Result<int32_t> read_int32(const boost::json::object& message, std::string_view name);
Result<uint32_t> read_uint32(const boost::json::object& message, std::string_view name);
Result<int64_t> read_int64(const boost::json::object& message, std::string_view name);
Result<uint64_t> read_uint64(const boost::json::object& message, std::string_view name);
// Base64, standard or URL-safe, padded or not.
Result<std::string> read_bytes(const boost::json::object& message, std::string_view name);

// An enum by name or number. Unknown numbers are returned as they are, unknown names refused.
struct EnumName {
  std::string_view name;
  int32_t number;
};
Result<int32_t> read_enum(const boost::json::object& message, std::string_view name,
                          std::span<const EnumName> names);

Result<std::vector<std::string>> read_strings(const boost::json::object& message,
                                              std::string_view name);
// map<string, string>, in the order it came.
using StringMap = std::vector<std::pair<std::string, std::string>>;
Result<StringMap> read_string_map(const boost::json::object& message, std::string_view name);

}  // namespace alcove::connect

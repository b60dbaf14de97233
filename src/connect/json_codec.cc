// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "connect/json_codec.h"

#include <cmath>
#include <limits>

#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/string.hpp>

#include "base/strings.h"

namespace alcove::connect {
namespace {

namespace json = boost::json;

constexpr size_t kMostDepth = 64;

std::string_view view(const json::string& text) { return {text.data(), text.size()}; }

// "envVars" is found as "envVars" and as "env_vars".
bool names_match(std::string_view name, std::string_view key) {
  size_t at = 0;
  for (const char c : name) {
    if (at < key.size() && key[at] == c) {
      ++at;
      continue;
    }
    const bool upper = c >= 'A' && c <= 'Z';
    if (!upper || at + 1 >= key.size() || key[at] != '_' || key[at + 1] != c - 'A' + 'a') {
      return false;
    }
    at += 2;
  }
  return at == key.size();
}

tl::unexpected<Error> wrong_type(std::string_view name, std::string_view wanted) {
  return fail(Code::kInvalidArgument, cat("field ", name, " must be ", wanted));
}

template <typename T>
std::optional<T> to_integer(const json::value& value) {
  switch (value.kind()) {
    case json::kind::int64:
      if (std::in_range<T>(value.get_int64())) return static_cast<T>(value.get_int64());
      return std::nullopt;
    case json::kind::uint64:
      if (std::in_range<T>(value.get_uint64())) return static_cast<T>(value.get_uint64());
      return std::nullopt;
    case json::kind::double_: {
      const double number = value.get_double();
      // Above 2^53 a double does not say which integer was meant.
      constexpr double kExact = 9007199254740992.0;
      if (number != std::trunc(number) || std::abs(number) > kExact) return std::nullopt;
      const auto whole = static_cast<int64_t>(number);
      if (!std::in_range<T>(whole)) return std::nullopt;
      return static_cast<T>(whole);
    }
    case json::kind::string:
      return parse_number<T>(view(value.get_string()));
    default:
      return std::nullopt;
  }
}

template <typename T>
Result<T> read_integer(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return T{0};
  const auto number = to_integer<T>(*value);
  if (!number) return wrong_type(name, "an integer in range");
  return *number;
}

}  // namespace

Result<json::object> parse_message(std::string_view text) {
  boost::system::error_code error;
  json::parse_options options;
  options.max_depth = kMostDepth;
  json::value value = json::parse({text.data(), text.size()}, error, {}, options);
  if (error) return fail(Code::kInvalidArgument, cat("invalid JSON: ", error.message()));
  if (!value.is_object()) return fail(Code::kInvalidArgument, "the message must be an object");
  return std::move(value.get_object());
}

const json::value* find_field(const json::object& message, std::string_view name) {
  for (const auto& member : message) {
    if (!names_match(name, {member.key().data(), member.key().size()})) continue;
    if (!member.value().is_null()) return &member.value();
  }
  return nullptr;
}

Result<const json::object*> read_object(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return wrong_type(name, "an object");
  return &value->get_object();
}

Result<const json::array*> read_array(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) return wrong_type(name, "an array");
  return &value->get_array();
}

Result<std::string> read_string(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return wrong_type(name, "a string");
  return std::string(view(value->get_string()));
}

Result<bool> read_bool(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return false;
  if (!value->is_bool()) return wrong_type(name, "a boolean");
  return value->get_bool();
}

Result<int32_t> read_int32(const json::object& message, std::string_view name) {
  return read_integer<int32_t>(message, name);
}
Result<uint32_t> read_uint32(const json::object& message, std::string_view name) {
  return read_integer<uint32_t>(message, name);
}
Result<int64_t> read_int64(const json::object& message, std::string_view name) {
  return read_integer<int64_t>(message, name);
}
Result<uint64_t> read_uint64(const json::object& message, std::string_view name) {
  return read_integer<uint64_t>(message, name);
}

Result<std::string> read_bytes(const json::object& message, std::string_view name) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return std::string();
  if (!value->is_string()) return wrong_type(name, "base64");
  auto bytes = from_base64(view(value->get_string()));
  if (!bytes) return wrong_type(name, "base64");
  return std::move(*bytes);
}

Result<int32_t> read_enum(const json::object& message, std::string_view name,
                          std::span<const EnumName> names) {
  const json::value* value = find_field(message, name);
  if (value == nullptr) return 0;
  if (!value->is_string()) {
    const auto number = to_integer<int32_t>(*value);
    if (!number) return wrong_type(name, "an enum name or number");
    return *number;
  }
  for (const EnumName& known : names) {
    if (known.name == view(value->get_string())) return known.number;
  }
  return wrong_type(name, "one of its known values");
}

Result<std::vector<std::string>> read_strings(const json::object& message, std::string_view name) {
  ALCOVE_TRY_ASSIGN(const json::array* elements, read_array(message, name));
  std::vector<std::string> strings;
  if (elements == nullptr) return strings;
  for (const json::value& element : *elements) {
    if (!element.is_string()) return wrong_type(name, "an array of strings");
    strings.emplace_back(view(element.get_string()));
  }
  return strings;
}

Result<StringMap> read_string_map(const json::object& message, std::string_view name) {
  ALCOVE_TRY_ASSIGN(const json::object* members, read_object(message, name));
  StringMap map;
  if (members == nullptr) return map;
  for (const auto& member : *members) {
    if (!member.value().is_string()) return wrong_type(name, "a map of strings");
    map.emplace_back(std::string(member.key().data(), member.key().size()),
                     view(member.value().get_string()));
  }
  return map;
}

}  // namespace alcove::connect

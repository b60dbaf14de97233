// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "api/json_view.h"

#include <cmath>
#include <limits>

#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>

#include "base/strings.h"

namespace alcove::api {
namespace {

namespace json = boost::json;

// Integers may be written as 300 or 300.0: JSON has only one kind of number.
std::optional<int64_t> as_integer(const json::value& value) {
  if (value.is_int64()) return value.get_int64();
  if (value.is_double()) {
    const double number = value.get_double();
    if (std::trunc(number) == number && std::abs(number) < 1e15) {
      return static_cast<int64_t>(number);
    }
  }
  return {};
}

}  // namespace

ApiResult<json::object> parse_object(std::string_view body) {
  boost::system::error_code error;
  json::value value = json::parse(body, error);
  if (error) return refuse_invalid(cat("the body is not valid JSON (", error.message(), ")"));
  if (!value.is_object()) return refuse_invalid("the body must be a JSON object");
  return std::move(value.get_object());
}

ApiResult<json::object> parse_optional_object(std::string_view body) {
  if (trim(body).empty()) return json::object();
  return parse_object(body);
}

const json::value* ObjectView::find(std::string_view name) const {
  const json::value* value = object_.if_contains(name);
  return value == nullptr || value->is_null() ? nullptr : value;
}

tl::unexpected<ApiError> ObjectView::wrong(std::string_view name, std::string_view expected) const {
  return refuse_invalid(cat("'", path_, name, "' must be ", expected));
}

ApiResult<std::optional<bool>> ObjectView::boolean(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_bool()) return wrong(name, "true or false");
  return value->get_bool();
}

ApiResult<std::optional<int32_t>> ObjectView::integer(std::string_view name,
                                                      int32_t minimum) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  // Beyond 64 bits Boost.JSON has unsigned numbers: integers all the same, only too large.
  const auto number = value->is_uint64() ? std::numeric_limits<int64_t>::max() : as_integer(*value);
  if (!number) return wrong(name, "an integer");
  if (*number < minimum) return wrong(name, cat("at least ", minimum));
  constexpr int32_t kMaximum = std::numeric_limits<int32_t>::max();
  if (*number > kMaximum) return wrong(name, cat("at most ", kMaximum));
  return static_cast<int32_t>(*number);
}

ApiResult<std::optional<std::string>> ObjectView::string(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return std::nullopt;
  if (!value->is_string()) return wrong(name, "a string");
  return std::string(value->get_string());
}

ApiResult<const json::object*> ObjectView::object(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_object()) return wrong(name, "an object");
  return &value->get_object();
}

ApiResult<const json::array*> ObjectView::array(std::string_view name) const {
  const json::value* value = find(name);
  if (value == nullptr) return nullptr;
  if (!value->is_array()) return wrong(name, "a list");
  return &value->get_array();
}

ApiResult<std::map<std::string, std::string>> ObjectView::string_map(std::string_view name) const {
  ALCOVE_API_TRY_ASSIGN(const json::object* entries, object(name));
  std::map<std::string, std::string> map;
  if (entries == nullptr) return map;
  for (const auto& [key, value] : *entries) {
    if (!value.is_string()) return wrong(name, "an object whose values are strings");
    map.emplace(key, value.get_string());
  }
  return map;
}

ApiResult<std::optional<std::vector<std::string>>> ObjectView::string_list(
    std::string_view name) const {
  ALCOVE_API_TRY_ASSIGN(const json::array* items, array(name));
  if (items == nullptr) return std::nullopt;
  std::vector<std::string> list;
  for (const json::value& item : *items) {
    if (!item.is_string()) return wrong(name, "a list of strings");
    list.emplace_back(item.get_string());
  }
  return list;
}

}  // namespace alcove::api

// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json/array.hpp>
#include <boost/json/object.hpp>

#include "api/errors.h"

namespace alcove::api {

// A request body that must be a JSON object.
ApiResult<boost::json::object> parse_object(std::string_view body);
// The same for routes that may be called without a body: then it is an empty object.
ApiResult<boost::json::object> parse_optional_object(std::string_view body);

// Typed reading of an object's fields: a wrong type is a 400 that names the field. An absent field
// and null are both "not given"; fields nobody asks for are ignored. Points into the object.
class ObjectView {
 public:
  // `path` goes before the field names in messages ("network.").
  explicit ObjectView(const boost::json::object& object, std::string path = {})
      : object_(object), path_(std::move(path)) {}

  ApiResult<std::optional<bool>> boolean(std::string_view name) const;
  // A 32-bit integer of at least `minimum`.
  ApiResult<std::optional<int32_t>> integer(std::string_view name, int32_t minimum) const;
  ApiResult<std::optional<std::string>> string(std::string_view name) const;
  // Null pointer if not given.
  ApiResult<const boost::json::object*> object(std::string_view name) const;
  ApiResult<const boost::json::array*> array(std::string_view name) const;
  ApiResult<std::map<std::string, std::string>> string_map(std::string_view name) const;
  ApiResult<std::optional<std::vector<std::string>>> string_list(std::string_view name) const;

 private:
  const boost::json::value* find(std::string_view name) const;
  tl::unexpected<ApiError> wrong(std::string_view name, std::string_view expected) const;

  const boost::json::object& object_;
  std::string path_;
};

}  // namespace alcove::api

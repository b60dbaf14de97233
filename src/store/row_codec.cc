// SPDX-License-Identifier: Apache-2.0
// Copyright the alcove authors
#include "store/row_codec.h"

#include <chrono>

#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

namespace alcove::store {
namespace {

namespace json = boost::json;

tl::unexpected<Error> broken() {
  return fail(Code::kDataLoss, "a column of the database does not hold the JSON it should");
}

}  // namespace

int64_t to_column(WallTime time) { return time.time_since_epoch().count(); }

WallTime time_from_column(int64_t microseconds) {
  return WallTime(std::chrono::microseconds(microseconds));
}

std::string to_column(const std::vector<std::string>& list) {
  json::array out;
  out.reserve(list.size());
  for (const std::string& item : list) out.emplace_back(item);
  return json::serialize(out);
}

Result<std::vector<std::string>> list_from_column(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_array()) return broken();
  std::vector<std::string> out;
  for (const json::value& item : value.get_array()) {
    if (!item.is_string()) return broken();
    out.emplace_back(item.get_string());
  }
  return out;
}

std::string to_column(const std::map<std::string, std::string>& map) {
  json::object out;
  for (const auto& [key, value] : map) out.emplace(key, value);
  return json::serialize(out);
}

Result<std::map<std::string, std::string>> map_from_column(std::string_view text) {
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  if (error || !value.is_object()) return broken();
  std::map<std::string, std::string> out;
  for (const auto& [key, item] : value.get_object()) {
    if (!item.is_string()) return broken();
    out.emplace(key, item.get_string());
  }
  return out;
}

}  // namespace alcove::store
